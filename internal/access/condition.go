package access

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"
)

// Limits of conditions. The first three bound the text of a policy, the last one
// what a caller with long names and many groups can make the server compute: about
// ten milliseconds.
const (
	maxConditionSource  = 2048 // code points
	maxConditionNesting = 2    // of loops over lists
	maxConditionDepth   = 32   // of the syntax tree
	maxConditionCost    = 100_000
)

// principal is what a condition sees of a caller.
type principal struct {
	Name   string   `cel:"name"`
	Groups []string `cel:"groups"`
	Tenant string   `cel:"tenant"`
	How    string   `cel:"how"`
}

// conditionVariables lists what a condition may name.
const conditionVariables = "principal (name, groups, tenant, how), method, graph, thread, tenant, now"

// conditionCompiler compiles conditions, each text once.
type conditionCompiler struct {
	env  *cel.Env
	done map[string]*condition
}

func newConditionCompiler() (*conditionCompiler, error) {
	env, err := cel.NewEnv(
		ext.NativeTypes(reflect.TypeFor[principal](), ext.ParseStructTags(true)),
		cel.Variable("principal", cel.ObjectType("access.principal")),
		cel.Variable("method", cel.StringType),
		cel.Variable("graph", cel.StringType),
		cel.Variable("thread", cel.StringType),
		cel.Variable("tenant", cel.StringType),
		cel.Variable("now", cel.TimestampType),
		cel.ParserExpressionSizeLimit(maxConditionSource),
		cel.ParserRecursionLimit(maxConditionDepth),
		cel.ASTValidators(
			cel.ValidateComprehensionNestingLimit(maxConditionNesting), cel.ValidateRegexLiterals(),
			cel.ValidateTimestampLiterals(), cel.ValidateDurationLiterals(),
		),
	)
	if err != nil {
		return nil, fmt.Errorf("environment of conditions: %w", err)
	}
	return &conditionCompiler{env: env, done: map[string]*condition{}}, nil
}

// conditionIssue is what is wrong with a condition.
type conditionIssue struct {
	line   int // of the condition, from 1
	reason string
	want   string
}

// compileCondition returns the condition of a text, or what is wrong with it.
func (c *conditionCompiler) compileCondition(source string) (*condition, []conditionIssue) {
	if known := c.done[source]; known != nil {
		return known, nil
	}
	checked, issues := c.env.Compile(source)
	if issues.Err() != nil {
		var all []conditionIssue
		for _, issue := range issues.Errors() {
			all = append(all, explainIssue(issue.Location.Line(), issue.Location.Column()+1, issue.Message))
		}
		return nil, all
	}
	if yields := checked.OutputType(); yields.Kind() != types.BoolKind {
		return nil, []conditionIssue{{
			1, fmt.Sprintf("the condition is of type %s", yields),
			"an expression that is true or false, like principal.name != \"ana\"",
		}}
	}
	program, err := c.env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxConditionCost))
	if err != nil {
		return nil, []conditionIssue{{1, err.Error(), "a condition of which every constant part has a value"}}
	}
	c.done[source] = &condition{program: program, namesGraph: namesVariable(checked, "graph"), namesThread: namesVariable(checked, "thread")}
	return c.done[source], nil
}

func explainIssue(line, column int, message string) conditionIssue {
	message, _, _ = strings.Cut(message, " expecting {") // a list of all tokens there are
	message = strings.ReplaceAll(message, "Syntax error: ", "syntax error: ")
	issue := conditionIssue{line, fmt.Sprintf("column %d of the condition: %s", column, message), "a CEL expression of " + conditionVariables}
	if m := regexp.MustCompile(`^undeclared reference to '([^']*)'`).FindStringSubmatch(message); m != nil {
		issue.reason = fmt.Sprintf("column %d of the condition: nothing is called %q", column, m[1])
		issue.want = conditionVariables + "; a text needs quotes of its own, like 'this'"
	}
	return issue
}

// condition is a compiled condition. It is safe for concurrent use.
type condition struct {
	program     cel.Program
	namesGraph  bool
	namesThread bool
}

// namesVariable reports whether a condition reads a variable.
func namesVariable(checked *cel.Ast, name string) bool {
	for _, found := range checked.NativeRep().ReferenceMap() {
		if found.Name == name {
			return true
		}
	}
	return false
}

// isTrueFor reports whether the condition is true of a request. One that fails is not.
func (c *condition) isTrueFor(r Request, tenant string) bool {
	out, _, err := c.program.Eval(&conditionInput{request: r, tenant: tenant})
	return err == nil && out == types.True
}

// conditionInput has the values of the variables.
type conditionInput struct {
	request Request
	tenant  string
}

// ResolveName returns the value of a variable.
func (in *conditionInput) ResolveName(name string) (any, bool) {
	switch name {
	case "principal":
		c := &in.request.Caller
		return &principal{Name: c.Name, Groups: c.Groups, Tenant: c.Tenant, How: c.How}, true
	case "method":
		return in.request.Method, true
	case "graph":
		return in.request.Graph, true
	case "thread":
		return in.request.Thread, true
	case "tenant":
		return in.tenant, true
	case "now":
		return in.request.Now, true
	}
	return nil, false
}

// Parent returns nil: there are no other variables.
func (*conditionInput) Parent() cel.Activation { return nil }
