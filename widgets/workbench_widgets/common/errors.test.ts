import { expect, it, vi } from "vitest";
import { clearError, errorBox, showError } from "./errors.ts";
import { CallError } from "./host.ts";

const failure = {
  kind: "RecipeError",
  message: "the recipe has no such field",
  details: { expected: "memory", found: "memroy", hint: "did you mean memory?" },
};

it("an error of Python says what, expected, found and what to do", () => {
  const box = errorBox(new CallError(failure));
  expect(box.getAttribute("role")).toBe("alert");
  const terms = [...box.querySelectorAll("dt")].map((term) => term.textContent);
  expect(terms).toEqual(["Expected", "Found", "What to do"]);
  expect(box.textContent).toContain("the recipe has no such field");
  expect(box.textContent).toContain("RecipeError");
  expect(box.textContent).toContain("did you mean memory?");
});

it("text of an error is text", () => {
  const box = errorBox(new Error("<img src=x onerror=alert(1)>"));
  expect(box.querySelector("img")).toBeNull();
});

it("is shown once, above the view, and can be closed", () => {
  const el = document.createElement("div");
  el.append(document.createElement("p"));
  const closed = vi.fn();
  showError(el, new Error("first"));
  showError(el, new Error("second"));
  expect(el.querySelectorAll(".wb-error").length).toBe(1);
  expect(el.firstElementChild?.textContent).toContain("second");
  clearError(el);
  expect(el.children.length).toBe(1);
  const box = errorBox("third", closed);
  el.prepend(box);
  box.querySelector("button")!.click();
  expect(closed).toHaveBeenCalledOnce();
  expect(el.children.length).toBe(1);
});
