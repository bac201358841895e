// Compiling and running small graphs.
#include "engine/test_support.h"

namespace wb::engine::test {

void test_load();

namespace {

void copies_an_input() {
  Builder b;
  const Shape shape = shape_of({2, 3});
  const ValueId x = b.input(shape);
  const ValueId y = b.temporary(shape);
  b.node(Op::Copy, {x}, y);
  const ValueId z = b.temporary(shape);
  b.node(Op::Copy, {y}, z);
  b.output(z);
  TestHost host;
  BackendInitContext context = host.init();
  Result<Program*> program = compile(context, std::move(b.graph), {});
  CHECK(program.ok());
  if (!program.ok()) {
    std::printf("%s\n", host.text.c_str());
    return;
  }
  TestTensor in(shape);
  TestTensor out(shape);
  for (int i = 0; i < 6; ++i) in.floats()[i] = static_cast<float>(i);
  EValue* args[] = {&in.value, &out.value};
  BackendExecuteContext run = host.run();
  CHECK(execute(run, **program, args) == Error::Ok);
  CHECK(std::memcmp(in.floats(), out.floats(), 24) == 0);
  TestTensor wrong(shape_of({3, 2}));
  EValue* bad[] = {&wrong.value, &out.value};
  CHECK(execute(run, **program, bad) == Error::InvalidArgument);
  CHECK(execute(run, **program, args) == Error::Ok);
  destroy(*program);
}

}  // namespace

void test_execute() {
  copies_an_input();
  test_load();
}

}  // namespace wb::engine::test
