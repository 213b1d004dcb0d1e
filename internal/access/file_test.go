package access_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/access"
)

// Every mistake in a policy is refused with its line, its field and what would be
// right.
func TestBadPoliciesAreRefused(t *testing.T) {
	const head = "bindings:\n- principals: [ana]\n  "
	for name, c := range map[string]struct {
		text  string
		line  int
		field string
		words string // of the problem
	}{
		"empty":                    {"", 0, "", "the file is empty; want a mapping with the key bindings"},
		"only a comment":           {"# later\n", 0, "", "the file is empty"},
		"null":                     {"~", 1, "", "found nothing; want the key bindings"},
		"a list":                   {"- a", 1, "", "found a list"},
		"no bindings":              {"{}", 1, "", "the key bindings is missing"},
		"bindings null":            {"\nbindings:\n", 2, "bindings", "found nothing; want a list of bindings, [] for none"},
		"bindings a mapping":       {"bindings: {roles: [viewer]}", 1, "bindings", "found a mapping"},
		"a binding of text":        {"bindings:\n- viewer", 2, "bindings[0]", `found the text "viewer"; want a binding: a mapping of roles,`},
		"another key":              {"bindings: []\nrules: []", 2, "rules", "unknown field; want one of bindings"},
		"another field":            {head + "roles: [viewer]\n  graph: [a]", 4, "bindings[0].graph", "unknown field; want one of roles, principals"},
		"a field twice":            {head + "roles: [viewer]\n  roles: [admin]", 4, "bindings[0].roles", "stands twice"},
		"a merge":                  {"bindings:\n- <<: {roles: [admin]}\n  principals: [a]", 2, "bindings[0].<<", "unknown field"},
		"an alias":                 {"bindings:\n- roles: &r [viewer]\n  principals: [a]\n- roles: *r\n  principals: [b]", 4, "bindings[1].roles", "an alias, which policies do not have"},
		"two documents":            {"bindings: []\n---\nbindings: []", 2, "", "a second document"},
		"no YAML":                  {"bindings: [\n", 0, "", "the file is not YAML"},
		"a tab":                    {"bindings:\n\t- a", 2, "", "the file is not YAML"},
		"a broken second part":     {"bindings: []\n---\n[", 0, "", "the file is not YAML"},
		"an empty binding":         {"bindings:\n- {}", 2, "bindings[0].roles", "the binding gives no roles"},
		"no caller":                {"bindings:\n- roles: [viewer]", 2, "bindings[0]", "the binding names no caller; want principals, groups, or both"},
		"no roles":                 {"bindings:\n- principals: [ana]", 2, "bindings[0].roles", "the binding gives no roles; want a list of viewer, answerer, linker, starter, worker, author, operator, admin"},
		"roles empty":              {head + "roles: []", 3, "bindings[0].roles", "the list is empty"},
		"roles a text":             {head + "roles: viewer", 3, "bindings[0].roles", `found the text "viewer"; want a list of viewer`},
		"an unknown role":          {head + "roles:\n  - viewer\n  - oprator", 5, "bindings[0].roles[1]", `unknown role "oprator"; want one of viewer, answerer`},
		"a role in capitals":       {head + "roles: [Admin]", 3, "bindings[0].roles[0]", `unknown role "Admin"`},
		"a role that is none":      {head + "roles: [null]", 3, "bindings[0].roles[0]", "found nothing; want a text"},
		"principals empty":         {"bindings:\n- roles: [viewer]\n  principals: []\n  groups: [a]", 3, "bindings[0].principals", "the list is empty"},
		"principals null":          {"bindings:\n- roles: [viewer]\n  principals:\n  groups: [a]", 3, "bindings[0].principals", "found nothing; want a list"},
		"a principal of nothing":   {"bindings:\n- roles: [viewer]\n  principals: ['']", 3, "bindings[0].principals[0]", "the name is empty"},
		"a principal in spaces":    {"bindings:\n- roles: [viewer]\n  principals: [' ana']", 3, "bindings[0].principals[0]", "spaces around it"},
		"a hidden character":       {"bindings:\n- roles: [viewer]\n  principals: [\"an\\u200ba\"]", 3, "bindings[0].principals[0]", "characters that do not show"},
		"a number":                 {"bindings:\n- roles: [viewer]\n  principals: [12]", 3, "bindings[0].principals[0]", "found 12, which is no text; want a text; write numbers and the like in quotes"},
		"a pattern of names":       {"bindings:\n- roles: [viewer]\n  principals: ['*']", 3, "bindings[0].principals[0]", `"*" looks like a pattern; want the whole name of a principal`},
		"a pattern of groups":      {"bindings:\n- roles: [viewer]\n  groups: ['team-*']", 3, "bindings[0].groups[0]", "looks like a pattern"},
		"a name of 2000 bytes":     {"bindings:\n- roles: [viewer]\n  groups: [" + strings.Repeat("x", 2000) + "]", 3, "bindings[0].groups[0]", "has 2000 bytes; want at most 1024"},
		"tenants empty":            {head + "roles: [viewer]\n  tenants: []", 4, "bindings[0].tenants", "the list is empty"},
		"a pattern of tenants":     {head + "roles: [viewer]\n  tenants: ['a*']", 4, "bindings[0].tenants[0]", "looks like a pattern"},
		"* and a tenant":           {head + "roles: [viewer]\n  tenants: [a, '*']", 4, "bindings[0].tenants[1]", "looks like a pattern"},
		"graphs empty":             {head + "roles: [viewer]\n  graphs: []", 4, "bindings[0].graphs", "the list is empty"},
		"an empty pattern":         {head + "roles: [viewer]\n  graphs: ['']", 4, "bindings[0].graphs[0]", "the pattern is empty"},
		"a bad pattern":            {head + "roles: [viewer]\n  graphs: [a, 'pay[out']", 4, "bindings[0].graphs[1]", `"pay[out" is no pattern; want a graph's name or a pattern like "payout*"; [ begins a class`},
		"a pattern for no graph":   {head + "roles: [viewer]\n  graphs: ['payout@*']", 4, "bindings[0].graphs[0]", "matches no graph"},
		"a long pattern":           {head + "roles: [viewer]\n  graphs: ['" + strings.Repeat("?", 129) + "']", 4, "bindings[0].graphs[0]", "has 129 bytes"},
		"an unknown right":         {head + "roles: [author]\n  rights: [fly]", 4, "bindings[0].rights[0]", `unknown right "fly"; want approve-changes`},
		"a right of a role":        {head + "roles: [author]\n  rights: [steer-run]", 4, "bindings[0].rights[0]", "comes with roles; want approve-changes here, or the role operator, admin"},
		"a right without author":   {head + "roles: [viewer]\n  rights: [approve-changes]", 4, "bindings[0].rights[0]", "permits nothing with these roles; want the role author, admin beside it"},
		"rights empty":             {head + "roles: [author]\n  rights: []", 4, "bindings[0].rights", "the list is empty"},
		"a condition of nothing":   {head + "roles: [viewer]\n  condition: ' '", 4, "bindings[0].condition", "want a CEL expression of principal (name, groups"},
		"a condition that is on":   {head + "roles: [viewer]\n  condition: true", 4, "bindings[0].condition", "which is no text"},
		"no boolean":               {head + "roles: [viewer]\n  condition: principal.name", 4, "bindings[0].condition", "is of type string; want an expression that is true or false"},
		"of unknown type":          {head + "roles: [viewer]\n  condition: 'dyn(true)'", 4, "bindings[0].condition", "is of type dyn"},
		"an unknown variable":      {head + "roles: [viewer]\n  condition: user == 'ana'", 4, "bindings[0].condition", `column 1 of the condition: nothing is called "user"; want principal (name`},
		"an unknown field":         {head + "roles: [viewer]\n  condition: principal.nmae == 'ana'", 4, "bindings[0].condition", "undefined field 'nmae'"},
		"no CEL":                   {head + "roles: [viewer]\n  condition: |\n    true\n    && (\n", 6, "bindings[0].condition", "syntax error"},
		"types that differ":        {head + "roles: [viewer]\n  condition: now > 12", 4, "bindings[0].condition", "found no matching overload"},
		"a bad literal":            {head + "roles: [viewer]\n  condition: now > timestamp('noon')", 4, "bindings[0].condition", "invalid timestamp argument"},
		"a bad regular expression": {head + "roles: [viewer]\n  condition: thread.matches('(')", 4, "bindings[0].condition", "invalid matches argument"},
		"loops in loops in loops": {
			head + "roles: [viewer]\n  condition: principal.groups.all(a, principal.groups.all(b, principal.groups.all(c, a == b)))", 4,
			"bindings[0].condition", "nesting",
		},
		"deep":          {head + "roles: [viewer]\n  condition: " + strings.Repeat("(", 500) + "true" + strings.Repeat(")", 500), 4, "bindings[0].condition", "column"},
		"long":          {head + "roles: [viewer]\n  condition: " + strings.Repeat("true && ", 1000) + "true", 4, "bindings[0].condition", "column"},
		"a large file":  {"bindings: []\n#" + strings.Repeat("x", access.MaxFileBytes), 0, "", "the file has"},
		"a nested file": {"bindings: " + strings.Repeat("[", 100_000), 0, "", "the file is not YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := access.Parse("policy.yaml", []byte(c.text))
			require.Nil(t, p)
			var bad *access.FileError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, "policy.yaml", bad.Path)
			first := bad.Problems[0]
			require.Contains(t, fmt.Sprintf("%s; want %s", first.Reason, first.Want), c.words)
			require.Equal(t, c.field, first.Field)
			if c.line > 0 {
				require.Equal(t, c.line, first.Line)
				require.Contains(t, err.Error(), fmt.Sprintf("policy.yaml: line %d: ", c.line))
			}
			require.Less(t, len(err.Error()), 20_000)
		})
	}
}

func TestAllProblemsAreToldInTheOrderOfTheFile(t *testing.T) {
	_, err := access.Parse("p", []byte("bindings:\n- rights: [a]\n  roles: [b]\n  principals: ['']\n- {}\nmore: 1\n"))
	var bad *access.FileError
	require.ErrorAs(t, err, &bad)
	var lines []int
	for _, p := range bad.Problems {
		lines = append(lines, p.Line)
	}
	require.Equal(t, []int{2, 3, 4, 5, 5, 6}, lines)
	_, err = access.Parse("p", []byte("bindings: ["+strings.Repeat("{},", 5000)+"]"))
	require.ErrorAs(t, err, &bad)
	require.Len(t, bad.Problems, 20)
}

// countLines returns the number of lines as YAML breaks them.
func countLines(text string) int {
	lines := 1
	for _, c := range text {
		if strings.ContainsRune("\n\r\u0085\u2028\u2029", c) {
			lines++
		}
	}
	return lines
}

func FuzzParse(f *testing.F) {
	f.Add(companyPolicy)
	f.Add("bindings: []")
	f.Add("bindings:\n- {roles: [admin], groups: [a], graphs: ['[^a]?*'], condition: 'has(principal.name) ? true : now < now'}")
	f.Add("bindings: &a [*a]")
	f.Add("bindings:\n- roles: [author]\n  principals: [a, a]\n  rights: [approve-changes]\n  tenants: ['*']\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := access.Parse("policy.yaml", []byte(text))
		if err != nil {
			var bad *access.FileError
			if !errors.As(err, &bad) || p != nil {
				t.Fatalf("no *FileError: %v", err)
			}
			for _, problem := range bad.Problems {
				if problem.Reason == "" || problem.Want == "" || problem.Line < 0 || problem.Line > countLines(text)+1 {
					t.Fatalf("%+v in %q", problem, text)
				}
			}
			return
		}
		for _, method := range []string{getThread, putGraph, listThreads} {
			d := p.Decide(access.Request{
				Caller: access.Caller{Name: "ana", Groups: []string{"finance"}, Tenant: "acme"},
				Method: method, Graph: "payout", Thread: "t", Now: time.Unix(1, 0), Rights: []access.Right{access.ApproveChanges},
			})
			if d.Rule == "" || d.Allowed && !d.CanSee {
				t.Fatalf("%+v", d)
			}
			// No policy gives anything to a caller in a tenant that it has not.
			d = p.Decide(access.Request{Caller: access.Caller{Name: "ana", Tenant: "acme"}, Tenant: "globex", Method: method})
			if d.Allowed || d.CanSee {
				t.Fatalf("%+v", d)
			}
		}
	})
}
