package docs_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/access"
)

var updateRoles = flag.Bool("update-roles", false, "write the tables of docs/roles.md instead of comparing them")

// The tables of the page are those of the code; `make roles-reference` writes them.
func TestRolesPage(t *testing.T) {
	page := read(t, "docs", "roles.md")
	want := page
	for name, table := range map[string]string{"roles": rolesTable(), "methods": methodsTable(), "rights": rightsTable()} {
		begin, end := "<!-- table: "+name+" -->\n", "<!-- end -->\n"
		before, rest, found := strings.Cut(want, begin)
		require.True(t, found, "docs/roles.md has no %q", begin)
		_, after, found := strings.Cut(rest, end)
		require.True(t, found, "docs/roles.md has no %q after %q", end, begin)
		want = before + begin + table + end + after
	}
	if *updateRoles {
		require.NoError(t, os.WriteFile(filepath.Join(root, "docs", "roles.md"), []byte(want), 0o600))
		return
	}
	require.Equal(t, want, page, "docs/roles.md is not what internal/access says: run `make roles-reference`")
}

// The policies of the page are accepted.
func TestRolesPageShowsPoliciesThatWork(t *testing.T) {
	blocks := strings.Split(read(t, "docs", "roles.md"), "```yaml\n")[1:]
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		_, err := access.Parse("docs/roles.md", []byte(text))
		require.NoError(t, err)
	}
}

func rolesTable() string {
	var b strings.Builder
	b.WriteString("| role | |\n|---|---|\n")
	for _, row := range access.Roles() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", row.Role, row.Meaning)
	}
	return b.String()
}

func methodsTable() string {
	var b, line strings.Builder
	b.WriteString("| method | concerns |")
	line.WriteString("|---|---|")
	for _, row := range access.Roles() {
		fmt.Fprintf(&b, " %s |", row.Role)
		line.WriteString("---|")
	}
	b.WriteString("\n" + line.String() + "\n")
	for _, row := range access.Methods() {
		name := strings.TrimPrefix(strings.TrimPrefix(row.Method, "/"), "graphd.v1.")
		fmt.Fprintf(&b, "| `%s` | %s |", name, row.Scope)
		for _, role := range access.Roles() {
			if slices.Contains(row.Roles, role.Role) || row.Scope.IsForAllCallers() {
				b.WriteString(" ✓ |")
			} else {
				b.WriteString("  |")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func rightsTable() string {
	var b strings.Builder
	b.WriteString("| right | what it permits | roles | needed by |\n|---|---|---|---|\n")
	for _, row := range access.Rights() {
		var roles []string
		for _, r := range row.Roles {
			roles = append(roles, "`"+string(r)+"`")
		}
		if row.InBindings {
			roles = append(roles, "none; a binding's `rights`")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", row.Right, row.Meaning, strings.Join(roles, ", "), describeFields(row.Fields))
	}
	return b.String()
}

// describeFields names the fields, and the methods with the same field together.
func describeFields(fields []access.Field) string {
	if len(fields) == 0 {
		return "no field of this version"
	}
	var texts []string
	methods := map[string][]string{}
	for _, f := range fields {
		text := ""
		if f.Path != "" {
			text = " `" + f.Path + "`"
		}
		if f.When != "" && f.When == strings.ToUpper(f.When) {
			text += " = `" + f.When + "`"
		} else if f.When != "" {
			text += ", when " + f.When
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
		methods[text] = append(methods[text], "`"+f.Method[strings.LastIndex(f.Method, "/")+1:]+"`")
	}
	for i, text := range texts {
		texts[i] = strings.Join(methods[text], ", ") + text
	}
	return strings.Join(texts, "; ")
}
