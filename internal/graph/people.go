package graph

import (
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/payload"
)

// NamesSpec names people: either the names, or an expression over the state that yields a
// name or a list of names.
type NamesSpec struct {
	Names []string
	Expr  string // "" = Names
}

// IsEmpty reports whether no name is given.
func (n *NamesSpec) IsEmpty() bool { return len(n.Names) == 0 && n.Expr == "" }

// PeopleSpec says who may answer a question, and how many must.
type PeopleSpec struct {
	Users        NamesSpec
	Groups       NamesSpec
	Approvals    int    // 0 = 1
	Vetoes       int    // 0 = 1
	Agree        string // CEL condition over `answer` alone; "" = every answer agrees
	NotRequester bool
	Requester    string // expression; "" = who started the run
	Exclusive    bool   // only who has claimed the question may answer
	// NotContributor refuses who has edited the state since the run began; Delegable lets those
	// who may answer name another user in their place.
	NotContributor bool
	Delegable      bool
	RevealUsers    []string // who may see the secret parts; both empty = who may answer
	RevealGroups   []string
}

// Policy returns the part of the policy that is known before the question is asked.
func (s *PeopleSpec) Policy() approval.Policy {
	return approval.Policy{
		Users: s.Users.Names, Groups: s.Groups.Names, Approvals: s.Approvals, Vetoes: s.Vetoes,
		Agree: s.Agree, NotRequester: s.NotRequester, Exclusive: s.Exclusive,
		NotContributor: s.NotContributor, Delegable: s.Delegable, RevealUsers: s.RevealUsers, RevealGroups: s.RevealGroups,
	}
}

// needsCallers reports whether only a server that knows its callers can keep the policy.
func (s *PeopleSpec) needsCallers() bool {
	known := s.Policy()
	return known.NeedsCallers() || s.Users.Expr != "" || s.Groups.Expr != ""
}

// buildPeople compiles the policy of a question.
func (b *nodeBuilder) buildPeople(path string, n *Node, s *PeopleSpec) {
	n.Users = b.compileNames(path+".users", &s.Users)
	n.Groups = b.compileNames(path+".groups", &s.Groups)
	n.Requester = b.compileExpression(path+".requester", s.Requester)
	policy := s.Policy()
	if s.Users.Expr != "" || s.Groups.Expr != "" {
		policy.Users, policy.Groups, policy.Delegable = nil, nil, false // how many there will be is not known
	}
	for _, problem := range policy.Check() {
		b.addProblem(path+"."+problem.Field, ReasonOutOfRange, "%s", problem.Text)
	}
	if s.Agree != "" && b.env.CheckCondition != nil {
		if err := b.env.CheckCondition(s.Agree); err != nil {
			b.addErrorProblem(path+".agree", ReasonInvalidExpression, "%v", err)
		}
	}
	if b.env.HasNoCallers && s.needsCallers() {
		b.addProblem(path, ReasonFeatureDisabled,
			"the server does not know who calls, so it can't keep the policy; start it with --api-keys, --token-issuers or --certificate-rules")
	}
}

// looksLikeExpression reports whether a name was meant as an expression.
func looksLikeExpression(name string) bool {
	for _, variable := range []string{"state", "context", "input"} {
		if rest, ok := strings.CutPrefix(name, variable); ok && rest != "" && (rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// compileNames compiles the expression of names, and checks the names.
func (b *nodeBuilder) compileNames(path string, s *NamesSpec) Program {
	if s.Names != nil && len(s.Names) == 0 && s.Expr == "" {
		b.addProblem(path, ReasonMissing, "the list is empty; name at least one, or leave it out")
	}
	for i, name := range s.Names {
		if looksLikeExpression(name) {
			field := path[strings.LastIndexByte(path, '.')+1:]
			b.addProblem(indexPath(path, i), ReasonInvalidType,
				"%q is a name here, in a list; an expression stands alone: `%s: %s`, or `%s: \"['ann', %s]\"` for several", name, field, name, field, name)
		}
	}
	return b.compileExpression(path, s.Expr)
}

// addNames adds names, or the expression that yields them.
func (o *jsonObject) addNames(key string, s *NamesSpec) {
	o.addText(key, s.Expr)
	o.addList(key, s.Names)
}

func encodePeople(s *PeopleSpec) payload.JSON {
	o := jsonObject{}
	o.addNames("users", &s.Users)
	o.addNames("groups", &s.Groups)
	o.addInt("approvals", s.Approvals)
	o.addInt("vetoes", s.Vetoes)
	o.addText("agree", s.Agree)
	o.addBool("not_requester", s.NotRequester)
	o.addBool("exclusive", s.Exclusive)
	o.addBool("not_contributor", s.NotContributor)
	o.addBool("delegable", s.Delegable)
	o.addText("requester", s.Requester)
	if len(s.RevealUsers)+len(s.RevealGroups) > 0 {
		reveal := jsonObject{}
		reveal.addList("users", s.RevealUsers)
		reveal.addList("groups", s.RevealGroups)
		o.addJSON("reveal", reveal.toJSON())
	}
	return o.toJSON()
}

// StepSpec is what happens when a question is not decided some time after it was asked.
type StepSpec struct {
	After     time.Duration
	Escalates bool // its people may answer as well; else they are reminded
	Users     []string
	Groups    []string
	Priority  string // "" = stays
}

// PriorityOf returns the priority that a checked graph names.
func PriorityOf(word string) approval.Priority {
	p, _ := approval.ParsePriority(word)
	return p
}

// ApprovalSteps returns the steps as they are taken.
func (s *AskSpec) ApprovalSteps() []approval.Step {
	if len(s.Steps) == 0 {
		return nil
	}
	steps := make([]approval.Step, len(s.Steps))
	for i := range s.Steps {
		one := &s.Steps[i]
		steps[i] = approval.Step{
			After: one.After, Escalates: one.Escalates, Users: one.Users, Groups: one.Groups, Priority: PriorityOf(one.Priority),
		}
	}
	return steps
}

// checkSteps checks the priority and the steps of a question.
func (b *nodeBuilder) checkSteps(path string, s *AskSpec) {
	b.checkPriority(path+".priority", s.Priority)
	for i := range s.Steps {
		at := indexPath(path+".steps", i)
		b.checkPriority(at+".priority", s.Steps[i].Priority)
		if !s.Steps[i].Escalates && s.Steps[i].Priority != "" {
			b.addProblem(at+".priority", ReasonConflict, "a reminder changes no priority; use escalate")
		}
		if s.Steps[i].Escalates && s.Steps[i].Priority == approval.Normal.String() {
			b.addProblem(at+".priority", ReasonOutOfRange, "an escalation makes nothing normal; leave it out to keep the priority of the question")
		}
	}
	var policy approval.Policy
	if s.People != nil {
		policy = s.People.Policy()
		if s.People.Users.Expr != "" || s.People.Groups.Expr != "" {
			policy.Groups = []string{"of the expression"} // it yields a name, or the node fails
		}
	}
	for _, problem := range approval.CheckSteps(&policy, s.ApprovalSteps(), s.TTL) {
		b.addProblem(path+"."+problem.Field, ReasonOutOfRange, "%s", problem.Text)
	}
}

func (b *nodeBuilder) checkPriority(path, word string) {
	if _, ok := approval.ParsePriority(word); !ok {
		b.addUnknown(path, ReasonUnknownValue, "priority", word, approval.Priorities)
	}
}

// encodePriority returns the word that is encoded: what is normal is left out.
func encodePriority(word string) string {
	if PriorityOf(word) == approval.Normal {
		return ""
	}
	return word
}

func encodeSteps(steps []StepSpec) payload.JSON {
	items := make([]payload.JSON, len(steps))
	for i := range steps {
		s := &steps[i]
		people := jsonObject{}
		people.addList("users", s.Users)
		people.addList("groups", s.Groups)
		people.addText("priority", s.Priority)
		o := jsonObject{}
		o.addDuration("after", s.After)
		if s.Escalates {
			o.addJSON("escalate", people.toJSON())
		} else {
			o.addJSON("remind", people.toJSON())
		}
		items[i] = o.toJSON()
	}
	return payload.Array(items)
}
