import numpy as np
import numpy.typing as npt

def layout(
    width: npt.NDArray[np.float32],
    height: npt.NDArray[np.float32],
    src: npt.NDArray[np.int32],
    dst: npt.NDArray[np.int32],
    weight: npt.NDArray[np.int32],
    anchor_x: npt.NDArray[np.float32],
    anchor_y: npt.NDArray[np.float32],
    gap_x: float,
    gap_y: float,
    margin: float,
    sweeps: int,
    max_span: int,
    /,
) -> tuple[
    npt.NDArray[np.float32],
    npt.NDArray[np.float32],
    float,
    float,
    npt.NDArray[np.int32],
    npt.NDArray[np.float32],
]: ...
