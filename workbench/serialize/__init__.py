"""Files: programs (`.pte`), data (`.ptd`), traces and records.

Nothing is copied: a written file references the weights where they lie, a read one maps them.
"""

from workbench.serialize.program_reader import read_program
from workbench.serialize.program_writer import SerializedProgram, write_program
from workbench.serialize.tensor_file import read_named_data, write_named_data

__all__ = ["SerializedProgram", "read_named_data", "read_program", "write_named_data", "write_program"]
