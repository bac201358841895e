import { expect, it } from "vitest";
import { bytes, count, delta, ms, number, percent, seconds, shorten } from "./format.ts";

it.each([
  [0, "0 B"],
  [1023, "1023 B"],
  [1024, "1.00 KiB"],
  [12.5 * 1024, "12.5 KiB"],
  [-3 * 1024 ** 2, "−3.00 MiB"],
  [1023.99 * 1024, "1.00 MiB"],
  [null, "–"],
  [Number.NaN, "–"],
])("bytes(%s) is %s", (value, text) => expect(bytes(value)).toBe(text));

it.each([
  [0, "0"],
  [1.25, "1.25 ms"],
  [0.83, "830 µs"],
  [2400, "2.40 s"],
  [0.00042, "420 ns"],
  [-0.5, "−500 µs"],
  [123456, "123 s"],
  [1_234_567, "1,235 s"],
  [999.9, "1.00 s"],
  [0.9999, "1.00 ms"],
  [null, "–"],
])("ms(%s) is %s", (value, text) => expect(ms(value)).toBe(text));

it.each([
  [0.42, "0.42 s"],
  [12, "12.0 s"],
  [0.083, "83.0 ms"],
  [null, "–"],
])("seconds(%s) is %s", (value, text) => expect(seconds(value)).toBe(text));

it("counts have separators", () => {
  expect(count(1234567)).toBe("1,234,567");
  expect(count(null)).toBe("–");
});

it.each([
  [3, "3"],
  [0.12345, "0.123"],
  [1234567, "1.23e+6"],
  [0.00012, "1.20e-4"],
  [12345.6, "12346"],
  [999.7, "1000"],
  [0, "0"],
  [Number.POSITIVE_INFINITY, "–"],
])("number(%s) is %s", (value, text) => expect(number(value)).toBe(text));

it("shares and differences", () => {
  expect(percent(0.1234)).toBe("12.3 %");
  expect(percent(null)).toBe("–");
  expect(delta(1024, bytes)).toBe("+1.00 KiB");
  expect(delta(-1024, bytes)).toBe("−1.00 KiB");
  expect(delta(0, bytes)).toBe("0 B");
  expect(delta(null, bytes)).toBe("–");
});

it("long names lose their middle", () => {
  expect(shorten("convolution_17", 20)).toBe("convolution_17");
  expect(shorten("aten_convolution_default_17", 12)).toBe("aten_c…lt_17");
  expect(shorten("aten_convolution_default_17", 12)).toHaveLength(12);
});
