package pregel

import "strings"

// JoinNamespace appends one level to a namespace.
func JoinNamespace(parent, level string) string {
	if parent == "" {
		return level
	}
	return parent + "|" + level
}

// NodePath drops the task ids of a namespace: "a:1|b:2" becomes "a|b".
func NodePath(namespace string) string {
	if !strings.Contains(namespace, ":") {
		return namespace
	}
	levels := strings.Split(namespace, "|")
	for i, l := range levels {
		levels[i], _, _ = strings.Cut(l, ":")
	}
	return strings.Join(levels, "|")
}
