// What is loaded later uses of the page. The build says what is missing here.

export { CallError } from "./api/connect";
export { connection } from "./api/connection";
export { pause, runWhileSeen } from "./api/seen";
export { client, noteError, ownGroups, ownName, signIn } from "./api/session";
export { Store, useStore } from "./api/store";
export { iconOf } from "./drawing/icons";
export { dropHidden, FieldEntry, JsonEntry } from "./form/form";
export { initialValue, readSchema, toTitle } from "./form/schema";
export { equalJson, isList, JsonObject, printJson, readPayload } from "./json/value";
export { listKeys, useKeys } from "./keys";
export { retract } from "./question/actions";
export { EntryFields } from "./question/answer";
export { beginAnswer, decidedValue, findDecision } from "./question/decision";
export { describeAnswer, toneOf } from "./question/outcome";
export { titleOf } from "./question/title";
export { addressOf, navigate } from "./route";
export { plainText, Text } from "./text/marks";
export { nameActor, shortName } from "./text/people";
export { formatCount, formatExact, formatMoment, formatSpan, readDuration, readTime } from "./text/time";
export { useNow } from "./ui/clock";
export { Icon, Logo } from "./ui/icons";
export { Key } from "./ui/key";
export { useLater } from "./ui/later";
export { Tabs } from "./ui/tabs";
export { showProblem, showToast } from "./ui/toast";
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export { Fragment, jsx, jsxs } from "preact/jsx-runtime";
