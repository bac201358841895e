// Questions of which only the last counts: one is under way, the newest waits, those between are dropped.

export class Latest<Question, Answer> {
  private readonly put: (question: Question) => Promise<Answer>;
  private under: Promise<unknown> | null = null;
  private waiting: { question: Question; done: (answer: Answer | null) => void; fail: (error: unknown) => void } | null = null;
  private turn = 0;

  constructor(put: (question: Question) => Promise<Answer>) {
    this.put = put;
  }

  /** The answer; null where a later question came before it was put or answered. */
  ask(question: Question): Promise<Answer | null> {
    this.cancel();
    return new Promise((done, fail) => {
      this.waiting = { question, done, fail };
      this.next();
    });
  }

  /** Nobody waits for an answer any more. */
  cancel(): void {
    this.turn++;
    this.waiting?.done(null);
    this.waiting = null;
  }

  private next(): void {
    if (this.under || !this.waiting) return;
    const { question, done, fail } = this.waiting;
    this.waiting = null;
    const own = this.turn;
    this.under = this.put(question)
      .then(
        (answer) => done(own === this.turn ? answer : null),
        (error: unknown) => (own === this.turn ? fail(error) : done(null)),
      )
      .finally(() => {
        this.under = null;
        this.next();
      });
  }
}
