package hostile

import (
	"fmt"
	"strings"
)

// Graph is one or more documents of graphs to put one after the other.
type Graph struct {
	Name      string
	Documents []string
	Says      string // is in the error of one of them, at the latest the last
}

// Graphs returns graphs that cost time or memory without bound where nothing
// bounds them.
func Graphs() []Graph {
	const header = `"graph":"hostile","version":"v1","channels":{"x":{}}`
	return []Graph{
		{Name: "a tower that doubles", Documents: tower(40, 2), Says: "max-graph-"},
		{Name: "a tower that is wide", Documents: tower(5, 20), Says: "max-graph-expanded-nodes"},
		{Name: "a deep tower", Documents: tower(60, 1), Says: "max-graph-depth"},
		{Name: "very many nodes", Documents: []string{`{` + header + `,"nodes":{` + list(20_000, func(i int) string {
			return fmt.Sprintf(`"n%d":{"remote":{}}`, i)
		}) + `},"edges":["START -> n0"]}`}, Says: "max-graph-nodes"},
		{Name: "very many state keys", Documents: []string{`{"graph":"hostile","channels":{` + list(20_000, func(i int) string {
			return fmt.Sprintf(`"c%d":{}`, i)
		}) + `},"nodes":{"n":{"remote":{}}},"edges":["START -> n"]}`}, Says: "max-graph-nodes"},
		{Name: "very many expressions", Documents: []string{`{` + header + `,"nodes":{` + list(900, func(i int) string {
			return fmt.Sprintf(`"n%d":{"ask":{"value":%q}}`, i, strings.Repeat("state.x + ", 40)+"1")
		}) + `},"edges":["START -> n0"]}`}, Says: "max-graph-expression-bytes"},
		{Name: "wrong names that look like others", Documents: []string{`{` + header + `,"nodes":{` + list(900, func(i int) string {
			return fmt.Sprintf(`"%s%d":{"remote":{}}`, strings.Repeat("n", 120), i)
		}) + `},"edges":[` + list(3000, func(i int) string {
			return fmt.Sprintf(`{"from":"START","to":"%s%dx"}`, strings.Repeat("n", 120), i)
		}) + `]}`}, Says: "UNKNOWN_NODE"},
		{Name: "a join of unknown names", Documents: []string{`{` + header + `,"nodes":{"n":{"remote":{}}},"edges":[{"from":[` +
			list(80_000, func(i int) string { return fmt.Sprintf(`"%d"`, i) }) + `],"to":"n"}]}`}, Says: "UNKNOWN_NODE"},
		{Name: "routers that may lead anywhere", Documents: []string{`{` + header + `,"nodes":{` + list(990, func(i int) string {
			return fmt.Sprintf(`"n%d":{"expr":{"update":{"x":"1"}}}`, i)
		}) + `},"edges":["START -> n0"],"conditional_edges":[` + list(12_000, func(i int) string {
			return `{"from":"n0","router":"r","in_worker":true,"name":"a"}`
		}) + `]}`}, Says: "DUPLICATE_NAME"},
		{Name: "aliases of YAML", Documents: []string{aliases()}, Says: "too large"},
		{Name: "nested JSON", Documents: []string{Nested(200_000, `[%s]`, "")}, Says: "INVALID_SYNTAX"},
		{Name: "a schema that multiplies", Documents: []string{`{` + header + `,"nodes":{"n":{"ask":{"value":"1","ttl":"1h",` +
			`"expiry":"resume_default","default":1,"schema":` + doubling(40, `{"anyOf":[NEXT,NEXT]}`) +
			`}}},"edges":["START -> n"]}`}, Says: "max-schema-steps"},
	}
}

// tower is a graph that holds the one below it a few times over.
func tower(height, wide int) []string {
	documents := []string{`{"graph":"tower0","version":"v1","channels":{"x":{}},"nodes":{"n":{"remote":{}}},"edges":["START -> n"]}`}
	for i := 1; i <= height; i++ {
		documents = append(documents, fmt.Sprintf(`{"graph":"tower%d","version":"v1","channels":{"x":{}},"nodes":{%s},"edges":[%s]}`, i,
			list(wide, func(n int) string { return fmt.Sprintf(`"n%d":{"graph":{"name":"tower%d","version":"v1"}}`, n, i-1) }),
			list(wide, func(n int) string { return fmt.Sprintf(`"START -> n%d"`, n) })))
	}
	return documents
}

// aliases is YAML in which each list holds the one before nine times.
func aliases() string {
	var b strings.Builder
	b.WriteString("graph: hostile\nmetadata:\n  a0: &a0 [x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&b, "  a%d: &a%d [%s]\n", i, i, list(9, func(int) string { return fmt.Sprintf("*a%d", i-1) }))
	}
	b.WriteString("channels: {x: {default: *a11}}\nnodes: {n: {remote: {}}}\nedges: [START -> n]\n")
	return b.String()
}
