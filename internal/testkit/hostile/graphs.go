package hostile

import (
	"fmt"
	"strings"
)

// Graph is one or more documents of graphs, to put in this order.
type Graph struct {
	Name      string
	Documents []string
	WantError string // part of the error of one of them, at the latest of the last
}

// Graphs returns graphs that cost unbounded time or memory without limits.
func Graphs() []Graph {
	const header = `"graph":"hostile","version":"v1","channels":{"x":{}}`
	return []Graph{
		{Name: "a tower that doubles", Documents: nestedGraphs(40, 2), WantError: "max-graph-"},
		{Name: "a tower that is wide", Documents: nestedGraphs(5, 20), WantError: "max-graph-expanded-nodes"},
		{Name: "a deep tower", Documents: nestedGraphs(60, 1), WantError: "max-graph-depth"},
		{Name: "very many nodes", Documents: []string{`{` + header + `,"nodes":{` + joinItems(20_000, func(i int) string {
			return fmt.Sprintf(`"n%d":{"remote":{}}`, i)
		}) + `},"edges":["START -> n0"]}`}, WantError: "max-graph-nodes"},
		{Name: "very many state keys", Documents: []string{`{"graph":"hostile","channels":{` + joinItems(20_000, func(i int) string {
			return fmt.Sprintf(`"c%d":{}`, i)
		}) + `},"nodes":{"n":{"remote":{}}},"edges":["START -> n"]}`}, WantError: "max-graph-nodes"},
		{Name: "very many expressions", Documents: []string{`{` + header + `,"nodes":{` + joinItems(900, func(i int) string {
			return fmt.Sprintf(`"n%d":{"ask":{"value":%q}}`, i, strings.Repeat("state.x + ", 40)+"1")
		}) + `},"edges":["START -> n0"]}`}, WantError: "max-graph-expression-bytes"},
		{Name: "wrong names that look like others", Documents: []string{`{` + header + `,"nodes":{` + joinItems(900, func(i int) string {
			return fmt.Sprintf(`"%s%d":{"remote":{}}`, strings.Repeat("n", 120), i)
		}) + `},"edges":[` + joinItems(3000, func(i int) string {
			return fmt.Sprintf(`{"from":"START","to":"%s%dx"}`, strings.Repeat("n", 120), i)
		}) + `]}`}, WantError: "UNKNOWN_NODE"},
		{Name: "a join of unknown names", Documents: []string{`{` + header + `,"nodes":{"n":{"remote":{}}},"edges":[{"from":[` +
			joinItems(80_000, func(i int) string { return fmt.Sprintf(`"%d"`, i) }) + `],"to":"n"}]}`}, WantError: "UNKNOWN_NODE"},
		{Name: "routers that may lead anywhere", Documents: []string{`{` + header + `,"nodes":{` + joinItems(990, func(i int) string {
			return fmt.Sprintf(`"n%d":{"expr":{"update":{"x":"1"}}}`, i)
		}) + `},"edges":["START -> n0"],"conditional_edges":[` + joinItems(12_000, func(i int) string {
			return `{"from":"n0","router":"r","in_worker":true,"name":"a"}`
		}) + `]}`}, WantError: "DUPLICATE_NAME"},
		{Name: "aliases of YAML", Documents: []string{yamlAliases()}, WantError: "too large"},
		{Name: "nested JSON", Documents: []string{Nested(200_000, `[%s]`, "")}, WantError: "INVALID_SYNTAX"},
		{Name: "a schema that multiplies", Documents: []string{`{` + header + `,"nodes":{"n":{"ask":{"value":"1","ttl":"1h",` +
			`"expiry":"resume_default","default":1,"schema":` + chainedSchema(40, `{"anyOf":[NEXT,NEXT]}`) +
			`}}},"edges":["START -> n"]}`}, WantError: "max-schema-steps"},
	}
}

// nestedGraphs returns graphs, each of which contains the one before a few times.
func nestedGraphs(height, wide int) []string {
	documents := []string{`{"graph":"tower0","version":"v1","channels":{"x":{}},"nodes":{"n":{"remote":{}}},"edges":["START -> n"]}`}
	for i := 1; i <= height; i++ {
		documents = append(documents, fmt.Sprintf(`{"graph":"tower%d","version":"v1","channels":{"x":{}},"nodes":{%s},"edges":[%s]}`, i,
			joinItems(wide, func(n int) string { return fmt.Sprintf(`"n%d":{"graph":{"name":"tower%d","version":"v1"}}`, n, i-1) }),
			joinItems(wide, func(n int) string { return fmt.Sprintf(`"START -> n%d"`, n) })))
	}
	return documents
}

// yamlAliases returns YAML in which each list contains the one before nine times.
func yamlAliases() string {
	var b strings.Builder
	b.WriteString("graph: hostile\nmetadata:\n  a0: &a0 [x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&b, "  a%d: &a%d [%s]\n", i, i, joinItems(9, func(int) string { return fmt.Sprintf("*a%d", i-1) }))
	}
	b.WriteString("channels: {x: {default: *a11}}\nnodes: {n: {remote: {}}}\nedges: [START -> n]\n")
	return b.String()
}
