package payload

// Merge returns object a with the entries of object b put over it: a key that
// both have keeps its place and takes b's value, new keys follow in b's order.
// The error is an *OperandError, or a *SyntaxError for text that is not JSON.
func Merge(a, b JSON) (JSON, error) { return mergeObjects(a, b, false) }

// DeepMerge merges as Merge does, and goes on inside where both values of a key are
// objects. Other values, arrays too, are replaced. The errors are those of Merge.
func DeepMerge(a, b JSON) (JSON, error) { return mergeObjects(a, b, true) }

func mergeObjects(a, b JSON, deep bool) (JSON, error) {
	left, right := KindOf(a), KindOf(b)
	if left != ObjectKind || right != ObjectKind {
		return "", &OperandError{Op: "merge", Left: left, Right: right, Problem: "both must be objects"}
	}
	fields, err := Fields(a)
	if err != nil {
		return "", err
	}
	place := make(map[string]int, len(fields))
	for i := range fields {
		place[fields[i].Key] = i
	}
	over, err := Fields(b)
	if err != nil {
		return "", err
	}
	for i := range over {
		at, known := place[over[i].Key]
		if !known {
			place[over[i].Key] = len(fields)
			fields = append(fields, over[i])
			continue
		}
		value := over[i].Value
		if deep && KindOf(value) == ObjectKind && KindOf(fields[at].Value) == ObjectKind {
			if value, err = mergeObjects(fields[at].Value, value, true); err != nil {
				return "", err
			}
		}
		fields[at].Value = value
	}
	return Object(fields), nil
}

// Union adds to the array a the elements of the array b that it does not have, in
// their order. a stays as it is; a repeated element of b is added once. The error
// is an *OperandError, or a *SyntaxError.
func Union(a, b JSON) (JSON, error) {
	left, right := KindOf(a), KindOf(b)
	if left != ArrayKind || right != ArrayKind {
		return "", &OperandError{Op: "unite", Left: left, Right: right, Problem: "both must be arrays"}
	}
	x, err := Elements(a)
	if err != nil {
		return "", err
	}
	y, err := Elements(b)
	if err != nil {
		return "", err
	}
	return Array(UnionItems(x, y)), nil
}

// UnionItems computes Union over arrays that are split already: the first len(a)
// elements of the result are those of a. It does not change its arguments.
func UnionItems(a, b []JSON) []JSON {
	out := make([]JSON, len(a), len(a)+len(b))
	copy(out, a)
	seen := make(map[JSON]bool, len(a)+len(b))
	for _, item := range a {
		seen[CanonicalText(item)] = true
	}
	for _, item := range b {
		key := CanonicalText(item)
		if !seen[key] {
			seen[key] = true
			out = append(out, item)
		}
	}
	return out
}
