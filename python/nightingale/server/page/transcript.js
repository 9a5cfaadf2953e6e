// The text that is spoken, with the word that is heard now highlighted.

/** Shows a text in `place`; a click on a word calls `seek` with the second at which it begins. */
export class Transcript {
  constructor(place, seek) {
    this.place = place;
    this.place.addEventListener("click", ({ target }) => {
      const mark = this.marks.find(({ span }) => span === target);
      if (mark) seek(mark.start);
    });
    this.begin("");
  }

  begin(text) {
    this.characters = [...text]; // as the server counts them
    this.shown = 0; // characters up to the end of the last word
    this.taken = 0; // words
    this.marks = []; // { span, start, end }, in order
    this.now = null;
    this.rest = document.createTextNode(text);
    this.place.replaceChildren(this.rest);
    this.place.scrollTop = 0;
  }

  /** Words as the server tells them: [text, start, end, source_start, source_end]. */
  take(words) {
    for (const word of words.slice(this.taken)) this.add(word);
    this.taken = words.length;
  }

  add([, start, end, sourceStart, sourceEnd]) {
    const last = this.marks.at(-1);
    if (sourceStart < this.shown) {
      // Such as the second word of "21", which is read as two.
      if (last) last.end = Math.max(last.end, end);
      return;
    }
    const span = document.createElement("span");
    span.textContent = this.cut(sourceStart, sourceEnd);
    this.rest.before(this.cut(this.shown, sourceStart), span);
    this.shown = sourceEnd;
    this.rest.data = this.cut(sourceEnd);
    this.marks.push({ span, start, end });
  }

  cut(start, end) {
    return this.characters.slice(start, end).join("");
  }

  /** Highlights the word of a second of the sound; none at null. */
  show(second) {
    const now = second === null ? null : this.marks.findLast(({ start }) => start <= second);
    const heard = now && second < now.end ? now.span : null;
    if (heard === this.now) return;
    this.now?.classList.remove("now");
    heard?.classList.add("now");
    this.now = heard;
    if (heard) this.keepInSight(heard);
  }

  keepInSight({ offsetTop, offsetHeight }) {
    const { scrollTop, clientHeight } = this.place;
    if (offsetTop < scrollTop || offsetTop + offsetHeight > scrollTop + clientHeight) {
      this.place.scrollTop = offsetTop - clientHeight / 3;
    }
  }
}
