// Pictures that are the same on every machine: the letters, the clock and the browser's size are given.

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const modules = join(dirname(fileURLToPath(import.meta.url)), "..", "node_modules");

const fonts = [["Inter", "inter/files/inter-latin-wght-normal.woff2"], ["JetBrains Mono", "jetbrains-mono/files/jetbrains-mono-latin-wght-normal.woff2"]].map(([family, path]) => {
  const data = readFileSync(join(modules, "@fontsource-variable", path)).toString("base64");
  return `@font-face { font-family: "${family}"; font-weight: 100 900; src: url(data:font/woff2;base64,${data}) format("woff2"); }`;
}).join("\n");

/** The time that pictures show. */
const shownTime = Date.parse("2026-03-17T10:04:00Z");
const stamps = /("effectiveTime":)?"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)"/g;

/** Options of openPage for pictures. */
export const pictureOptions = { bypassCSP: true, timezoneId: "UTC", locale: "en-GB", reducedMotion: "reduce" };

/**
 * Gives a page a clock that stands, so that what the server made at a time seems to be some
 * minutes old; ages has the minutes by thread. change makes another answer of one.
 */
export async function freezeTime(page, ages, change = (body) => body) {
  const shift = (text, threadId, now) => text.replaceAll(stamps, (_, undone, stamp) => {
    const age = undone ? 0 : (ages[threadId] ?? 0) * 60e3; // what was answered just now has no age
    return (undone ?? "") + JSON.stringify(new Date(Date.parse(stamp) - now + shownTime - age).toISOString());
  });
  const now = Date.now();
  await page.clock.setFixedTime(shownTime);
  await page.route("**/graphd.v1.*/*", async (route) => {
    if (route.request().headers()["content-type"].includes("connect+json")) return route.continue();
    const response = await route.fetch();
    const body = JSON.parse(await response.text());
    const requested = JSON.parse(route.request().postData() ?? "{}").threadId;
    const shifted = (value) => JSON.parse(shift(JSON.stringify(value), value.threadId ?? requested, now));
    const list = body.threadId ? undefined : ["interrupts", "threads"].find((name) => body[name]);
    await route.fulfill({ response, json: change(list ? { ...body, [list]: body[list].map(shifted) } : shifted(body)) });
  });
  await page.addStyleTag({ content: fonts });
}

/** Returns the part of pixels in which two PNG files differ, 1 for pictures of other sizes. */
export async function comparePictures(page, one, other) {
  const urls = [one, other].map((png) => "data:image/png;base64," + png.toString("base64"));
  return page.evaluate(async ([a, b]) => {
    const read = async (url) => {
      const image = new Image();
      image.src = url;
      await image.decode();
      const canvas = new OffscreenCanvas(image.width, image.height);
      const context = canvas.getContext("2d");
      context.drawImage(image, 0, 0);
      return context.getImageData(0, 0, image.width, image.height);
    };
    const [x, y] = [await read(a), await read(b)];
    if (x.width !== y.width || x.height !== y.height) return 1;
    let different = 0;
    for (let i = 0; i < x.data.length; i += 4) {
      if (Math.max(Math.abs(x.data[i] - y.data[i]), Math.abs(x.data[i + 1] - y.data[i + 1]), Math.abs(x.data[i + 2] - y.data[i + 2])) > 40) different++;
    }
    return different / (x.data.length / 4);
  }, urls);
}
