/** Which values a filter lets through. */
import { encode } from "../codec/index.js";

type Operator = (value: unknown, operand: unknown) => boolean;

const OPERATORS: Record<string, Operator> = {
  $eq: isEqual,
  $ne: (value, operand) => !isEqual(value, operand),
  $gt: ordered((value: any, operand: any) => value > operand),
  $gte: ordered((value: any, operand: any) => value >= operand),
  $lt: ordered((value: any, operand: any) => value < operand),
  $lte: ordered((value: any, operand: any) => value <= operand),
};

/**
 * The value has all that the filter names: an equal value, or one that meets the operators. An object without operators
 * is met by an object that has all of it, a list by one with as many elements that meet its own.
 */
export function passesFilter(value: Record<string, any>, filter: Record<string, any>): boolean {
  return Object.entries(filter).every(([field, wanted]) => isLike(value[field], wanted));
}

/** Throws a TypeError for an unknown operator, before anything is compared. */
export function checkOperators(wanted: unknown): void {
  if (!isObject(wanted) && !Array.isArray(wanted)) return;
  for (const [name, inner] of Object.entries(wanted)) {
    if (name.startsWith("$") && OPERATORS[name] === undefined) throw refuseOperator(name);
    if (!name.startsWith("$")) checkOperators(inner);
  }
}

function isLike(value: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    return (
      Array.isArray(value) &&
      value.length === wanted.length &&
      wanted.every((part, at) => isLike(value[at], part))
    );
  }
  if (!isObject(wanted)) return isEqual(value, wanted);
  const fields = Object.entries(wanted);
  if (fields.some(([name]) => name.startsWith("$"))) {
    return fields.every(([name, operand]) => findOperator(name)(value, operand));
  }
  return isObject(value) && passesFilter(value, wanted);
}

function findOperator(name: string): Operator {
  const found = OPERATORS[name];
  if (found === undefined) throw refuseOperator(name);
  return found;
}

function refuseOperator(name: string): TypeError {
  return new TypeError(`unknown operator ${name}: want one of ${Object.keys(OPERATORS).join(", ")}`);
}

/** A comparison of two numbers or two texts. Other values do not meet it. */
function ordered(compare: Operator): Operator {
  return (value, operand) => isOrdered(value, operand) && compare(value, operand);
}

function isOrdered(value: unknown, operand: unknown): boolean {
  if (typeof value === "string") return typeof operand === "string";
  return isNumber(value) && isNumber(operand);
}

function isNumber(value: unknown): boolean {
  return typeof value === "number" || typeof value === "bigint";
}

/** Nothing is equal to null, as the server has it. */
function isEqual(value: unknown, wanted: unknown): boolean {
  return encode(value ?? null) === encode(wanted ?? null);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
