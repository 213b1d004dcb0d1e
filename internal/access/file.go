package access

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Limits of a policy file.
const (
	// MaxFileBytes is the size of the largest policy file.
	MaxFileBytes = 4 << 20
	maxNameBytes = 1024 // of a principal, a group or a tenant
	maxGraphName = 128  // bytes, and so of a pattern
	maxProblems  = 20
)

// anyTenant as the only tenant of a binding stands for all tenants of a caller.
const anyTenant = "*"

// Parse reads a policy from YAML:
//
//	bindings:
//	  - roles: [answerer]
//	    groups: [finance]
//	    graphs: ["payout*"]
//
// The path is for messages only. The error is a *FileError. Nothing is guessed: an
// unknown field, a key that stands twice, an alias, a value of another type, an empty
// list, an unknown role and a condition that is not boolean are problems.
func Parse(filePath string, text []byte) (*Policy, error) {
	r := &reader{policy: NewPolicy()}
	r.readFile(text)
	if len(r.problems) > 0 {
		slices.SortStableFunc(r.problems, func(x, y Problem) int { return cmp.Compare(x.Line, y.Line) })
		return nil, &FileError{Path: filePath, Problems: r.problems[:min(len(r.problems), maxProblems)]}
	}
	return r.policy, nil
}

// reader builds a policy from the tree of a file and collects the problems.
type reader struct {
	policy     *Policy
	conditions *conditionCompiler // made for the first condition
	problems   []Problem
}

func (r *reader) addProblem(n *yaml.Node, field, reason, want string) {
	r.problems = append(r.problems, Problem{Line: n.Line, Field: field, Reason: reason, Want: want})
}

// readFile reads a policy, and adds a problem for each thing that is wrong with it.
func (r *reader) readFile(text []byte) {
	const wantFile = "a mapping with the key bindings, which may be an empty list"
	if len(text) > MaxFileBytes {
		r.problems = append(r.problems, Problem{
			Reason: fmt.Sprintf("the file has %d bytes", len(text)), Want: fmt.Sprintf("at most %d", MaxFileBytes),
		})
		return
	}
	var document, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	err := decoder.Decode(&document)
	switch {
	case errors.Is(err, io.EOF):
		r.problems = append(r.problems, Problem{Reason: "the file is empty", Want: wantFile})
		return
	case err != nil:
		r.addSyntaxError(err)
		return
	}
	if err := decoder.Decode(&more); err == nil {
		r.addProblem(&more, "", "a second document begins here", "one document")
	} else if !errors.Is(err, io.EOF) {
		r.addSyntaxError(err)
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		r.addProblem(&document, "", "the file has no content", wantFile)
		return
	}
	top := document.Content[0]
	fields := r.readFields(top, "", "the key bindings", "bindings")
	bindings, ok := fields["bindings"]
	if !ok {
		if top.Kind == yaml.MappingNode {
			r.addProblem(top, "", "the key bindings is missing", wantFile)
		}
		return
	}
	if bindings.Kind != yaml.SequenceNode {
		r.addProblem(bindings, "bindings", "found "+describeNode(bindings), "a list of bindings, [] for none")
		return
	}
	for i, n := range bindings.Content {
		r.readBinding(n, fmt.Sprintf("bindings[%d]", i))
	}
}

// addSyntaxError adds an error of the YAML parser, which names its line in words.
func (r *reader) addSyntaxError(err error) {
	reason := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(reason); m != nil {
		line, _ = strconv.Atoi(m[1])
		reason = strings.TrimPrefix(reason, m[0])
	}
	r.problems = append(r.problems, Problem{Line: line, Reason: "the file is not YAML: " + reason, Want: "YAML"})
}

// readFields returns the values of a mapping by their keys, which must be among the
// known ones.
func (r *reader) readFields(n *yaml.Node, field, what string, known ...string) map[string]*yaml.Node {
	want := what + ": a mapping of " + strings.Join(known, ", ")
	if n.Kind != yaml.MappingNode {
		r.addProblem(n, field, "found "+describeNode(n), want)
		return nil
	}
	fields := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := joinField(field, shortenText(key.Value))
		switch {
		case key.Kind != yaml.ScalarNode || !slices.Contains(known, key.Value):
			r.addProblem(key, name, "unknown field", "one of "+strings.Join(known, ", "))
		case fields[key.Value] != nil:
			r.addProblem(key, name, "the field stands twice", "each field once")
		default:
			fields[key.Value] = value
		}
	}
	return fields
}

func joinField(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}

// describeNode returns what a node is, for a message that says what was found.
func describeNode(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias, which policies do not have"
	case yaml.ScalarNode:
		switch n.ShortTag() {
		case "!!null":
			return "nothing"
		case "!!str":
			return "the text " + strconv.Quote(shortenText(n.Value))
		}
		return shortenText(n.Value) + ", which is no text"
	case yaml.DocumentNode:
	}
	return "something else"
}

// shortenText keeps messages short whatever is in the file.
func shortenText(text string) string {
	const most = 64
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// readBinding reads a binding. It adds it to the policy only when all of it is right.
func (r *reader) readBinding(n *yaml.Node, field string) {
	before := len(r.problems)
	fields := r.readFields(n, field, "a binding",
		"roles", "principals", "groups", "tenants", "graphs", "condition", "rights")
	if fields == nil {
		return
	}
	b := &binding{
		rule: fmt.Sprintf("binding: line %d", n.Line), unmetRule: fmt.Sprintf("condition: line %d", n.Line),
	}
	if fields["roles"] == nil {
		r.addProblem(n, field+".roles", "the binding gives no roles", "a list of "+roleNames())
	}
	if fields["principals"] == nil && fields["groups"] == nil {
		r.addProblem(n, field, "the binding names no caller", "principals, groups, or both")
	}
	b.roles = r.readRoles(fields["roles"], field+".roles")
	b.rights = r.policy.rightsOf(b.roles) | r.readRights(fields["rights"], field+".rights", b.roles)
	r.readTenants(fields["tenants"], field+".tenants", b)
	b.graphs = r.readGraphs(fields["graphs"], field+".graphs")
	b.condition = r.readCondition(fields["condition"], field+".condition")
	principals := r.readNames(fields["principals"], field+".principals", "a principal")
	groups := r.readNames(fields["groups"], field+".groups", "a group")
	if len(r.problems) > before {
		return
	}
	r.policy.bindingCount++
	addToIndex(r.policy.byPrincipal, principals, b)
	addToIndex(r.policy.byGroup, groups, b)
}

func addToIndex(index map[string][]*binding, names []string, b *binding) {
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		index[name] = append(index[name], b)
	}
}

// textItem is a text of a list.
type textItem struct {
	node  *yaml.Node
	field string
	text  string
}

// readTexts returns the texts of a list, none for a field that is left out.
func (r *reader) readTexts(n *yaml.Node, field, want string) []textItem {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		r.addProblem(n, field, "found "+describeNode(n), "a list of "+want)
		return nil
	}
	if len(n.Content) == 0 {
		r.addProblem(n, field, "the list is empty", "at least one of "+want+", or no such field")
	}
	items := make([]textItem, 0, len(n.Content))
	for i, item := range n.Content {
		name := fmt.Sprintf("%s[%d]", field, i)
		if item.Kind != yaml.ScalarNode || item.ShortTag() != "!!str" {
			r.addProblem(item, name, "found "+describeNode(item), "a text; write numbers and the like in quotes")
			continue
		}
		items = append(items, textItem{item, name, item.Value})
	}
	return items
}

func roleNames() string {
	rows := Roles()
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = string(row.Role)
	}
	return strings.Join(names, ", ")
}

func (r *reader) readRoles(n *yaml.Node, field string) roleSet {
	var set roleSet
	for _, item := range r.readTexts(n, field, roleNames()) {
		bit := roleBit(item.text)
		if bit == 0 {
			r.addProblem(item.node, item.field, fmt.Sprintf("unknown role %q", shortenText(item.text)), "one of "+roleNames())
		}
		set |= bit
	}
	return set
}

// readRights returns the rights of a list. Each must be one that bindings may give, and
// permit something beside the roles.
func (r *reader) readRights(n *yaml.Node, field string, roles roleSet) rightSet {
	var known []string
	for _, row := range Rights() {
		if row.InBindings {
			known = append(known, string(row.Right))
		}
	}
	want := strings.Join(known, ", ")
	var set rightSet
	for _, item := range r.readTexts(n, field, want) {
		i := slices.IndexFunc(r.policy.rights, func(right rightRule) bool { return string(right.name) == item.text })
		switch {
		case i < 0:
			r.addProblem(item.node, item.field, fmt.Sprintf("unknown right %q", shortenText(item.text)), want)
		case !r.policy.rights[i].inBindings:
			r.addProblem(item.node, item.field, fmt.Sprintf("the right %s comes with roles", item.text),
				want+" here, or the role "+joinRoles(Rights()[i].Roles))
		case roles&r.policy.rights[i].beside == 0:
			r.addProblem(item.node, item.field, fmt.Sprintf("the right %s permits nothing with these roles", item.text),
				"the role "+joinRoles(Rights()[i].Beside)+" beside it, or no such right")
		default:
			set |= 1 << i
		}
	}
	return set
}

// readNames returns names of principals, groups or tenants. They are compared as
// they are.
func (r *reader) readNames(n *yaml.Node, field, what string) []string {
	items := r.readTexts(n, field, what+"'s names")
	names := make([]string, 0, len(items))
	for _, item := range items {
		switch {
		case item.text == "":
			r.addProblem(item.node, item.field, "the name is empty", "the name of "+what)
		case len(item.text) > maxNameBytes:
			r.addProblem(item.node, item.field, fmt.Sprintf("the name has %d bytes", len(item.text)), fmt.Sprintf("at most %d", maxNameBytes))
		case !isPlainText(item.text):
			r.addProblem(item.node, item.field, fmt.Sprintf("%q has spaces around it or characters that do not show", shortenText(item.text)),
				"the name of "+what)
		case strings.Contains(item.text, "*"):
			r.addProblem(item.node, item.field, fmt.Sprintf("%q looks like a pattern", shortenText(item.text)),
				"the whole name of "+what+": only graphs have patterns")
		}
		names = append(names, item.text)
	}
	return names
}

func isPlainText(text string) bool {
	return utf8.ValidString(text) && strings.TrimSpace(text) == text &&
		!strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) })
}

func (r *reader) readTenants(n *yaml.Node, field string, b *binding) {
	if n != nil && n.Kind == yaml.SequenceNode && len(n.Content) == 1 && n.Content[0].Kind == yaml.ScalarNode &&
		n.Content[0].Value == anyTenant {
		b.anyTenant = true
		return
	}
	if n != nil {
		b.tenants = r.readNames(n, field, "a tenant")
	}
}

func (r *reader) readGraphs(n *yaml.Node, field string) []graphPattern {
	const want = "a graph's name or a pattern like \"payout*\""
	var patterns []graphPattern
	for _, item := range r.readTexts(n, field, "names of graphs, or patterns") {
		_, err := path.Match(item.text, "")
		switch {
		case item.text == "":
			r.addProblem(item.node, item.field, "the pattern is empty", want)
		case len(item.text) > maxGraphName:
			r.addProblem(item.node, item.field, fmt.Sprintf("the pattern has %d bytes", len(item.text)), fmt.Sprintf("at most %d", maxGraphName))
		case err != nil:
			r.addProblem(item.node, item.field, fmt.Sprintf("%q is no pattern", shortenText(item.text)), want+"; [ begins a class that ] ends")
		case strings.ContainsAny(item.text, "/@|:"):
			r.addProblem(item.node, item.field, fmt.Sprintf("%q matches no graph", shortenText(item.text)), want+" without / @ | :")
		}
		patterns = append(patterns, graphPattern{text: item.text, isExact: !strings.ContainsAny(item.text, `*?[\`)})
	}
	return patterns
}

func (r *reader) readCondition(n *yaml.Node, field string) *condition {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || strings.TrimSpace(n.Value) == "" {
		r.addProblem(n, field, "found "+describeNode(n), "a CEL expression of "+conditionVariables)
		return nil
	}
	if r.conditions == nil {
		compiler, err := newConditionCompiler()
		if err != nil {
			r.addProblem(n, field, err.Error(), "a graphd that is built as it is tested")
			return nil
		}
		r.conditions = compiler
	}
	compiled, issues := r.conditions.compileCondition(strings.TrimRight(n.Value, " \n"))
	for _, issue := range issues {
		at := *n
		if n.Style&yaml.LiteralStyle != 0 { // its text begins below the field
			at.Line += issue.line
		}
		r.addProblem(&at, field, issue.reason, issue.want)
	}
	return compiled
}
