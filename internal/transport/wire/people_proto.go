package wire

import (
	"cmp"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/graph"
)

func peopleSpecFromProto(v *Validator, at string, p *graphdv1.PeopleSpec) *graph.PeopleSpec {
	if p == nil {
		return nil
	}
	return &graph.PeopleSpec{
		Users:     graph.NamesSpec{Names: p.GetUsers(), Expr: p.GetUsersExpr()},
		Groups:    graph.NamesSpec{Names: p.GetGroups(), Expr: p.GetGroupsExpr()},
		Approvals: v.ConvertLimit(at+".approvals", p.GetApprovals()), Vetoes: v.ConvertLimit(at+".vetoes", p.GetVetoes()),
		Agree: p.GetAgree(), NotRequester: p.GetNotRequester(), Requester: p.GetRequester(), Exclusive: p.GetExclusive(),
		NotContributor: p.GetNotContributor(), Delegable: p.GetDelegable(),
		RevealUsers: checkRevealers(v, at, p.GetReveal()).GetUsers(), RevealGroups: p.GetReveal().GetGroups(),
	}
}

// checkRevealers checks and returns those who may see secret parts.
func checkRevealers(v *Validator, at string, a *graphdv1.Audience) *graphdv1.Audience {
	if a.GetPriority() != graphdv1.Priority_PRIORITY_UNSPECIFIED {
		v.AddViolation(at+".reveal.priority", "must be unset: it has no use here")
	}
	v.CheckNames(at+".reveal.users", a.GetUsers())
	v.CheckNames(at+".reveal.groups", a.GetGroups())
	return a
}

func revealersToProto(users, groups []string) *graphdv1.Audience {
	if len(users)+len(groups) == 0 {
		return nil
	}
	return &graphdv1.Audience{Users: users, Groups: groups}
}

func peopleSpecToProto(p *graph.PeopleSpec) *graphdv1.PeopleSpec {
	if p == nil {
		return nil
	}
	return &graphdv1.PeopleSpec{
		Users: p.Users.Names, UsersExpr: p.Users.Expr, Groups: p.Groups.Names, GroupsExpr: p.Groups.Expr,
		Approvals: ClampUint32(p.Approvals), Vetoes: ClampUint32(p.Vetoes), Agree: p.Agree,
		NotRequester: p.NotRequester, Requester: p.Requester, Exclusive: p.Exclusive,
		NotContributor: p.NotContributor, Delegable: p.Delegable, Reveal: revealersToProto(p.RevealUsers, p.RevealGroups),
	}
}

// policyFromProto converts the policy of a question; nil when it demands nothing.
func policyFromProto(v *Validator, at string, p *graphdv1.People) *approval.Policy {
	if p == nil {
		return nil
	}
	out := &approval.Policy{
		Users: v.CheckNames(at+".users", p.GetUsers()), Groups: v.CheckNames(at+".groups", p.GetGroups()),
		Approvals: v.ConvertLimit(at+".approvals", p.GetApprovals()), Vetoes: v.ConvertLimit(at+".vetoes", p.GetVetoes()),
		Agree: v.CheckText(at+".agree", p.GetAgree()), NotRequester: p.GetNotRequester(), Requester: v.CheckName(at+".requester", p.GetRequester()),
		Exclusive: p.GetExclusive(), NotContributor: p.GetNotContributor(), Delegable: p.GetDelegable(),
		RevealUsers: checkRevealers(v, at, p.GetReveal()).GetUsers(), RevealGroups: p.GetReveal().GetGroups(),
	}
	for _, problem := range out.Check() {
		v.AddViolation(at+"."+problem.Field, "%s", problem.Text)
	}
	if out.IsZero() {
		return nil
	}
	return out
}

func policyToProto(p *approval.Policy) *graphdv1.People {
	if p == nil {
		return nil
	}
	return &graphdv1.People{
		Users: p.Users, Groups: p.Groups, Approvals: ClampUint32(p.Approvals), Vetoes: ClampUint32(p.Vetoes),
		NotRequester: p.NotRequester, Requester: p.Requester, Exclusive: p.Exclusive, Agree: p.Agree,
		NotContributor: p.NotContributor, Delegable: p.Delegable, Reveal: revealersToProto(p.RevealUsers, p.RevealGroups),
	}
}

func votesToProto(votes []approval.Vote) []*graphdv1.Vote {
	var out []*graphdv1.Vote
	for i := range votes {
		v := &votes[i]
		out = append(out, &graphdv1.Vote{
			Principal: v.Voter, Time: TimeToProto(v.Time), Agrees: v.Agrees, Value: JSONToProto(v.Value), Note: v.Note,
			Trail: ClampUint32(v.Entry),
		})
	}
	return out
}

func priorityFromProto(v *Validator, at string, p graphdv1.Priority) approval.Priority {
	switch p {
	case graphdv1.Priority_PRIORITY_UNSPECIFIED, graphdv1.Priority_PRIORITY_NORMAL:
		return approval.Normal
	case graphdv1.Priority_PRIORITY_LOW:
		return approval.Low
	case graphdv1.Priority_PRIORITY_HIGH:
		return approval.High
	case graphdv1.Priority_PRIORITY_URGENT:
		return approval.Urgent
	}
	v.AddViolation(at, "is %d, which is no priority", p)
	return approval.Normal
}

func priorityToProto(p approval.Priority) graphdv1.Priority {
	return graphdv1.Priority_PRIORITY_NORMAL + graphdv1.Priority(p)
}

// stepsFromProto converts the steps of a question.
func stepsFromProto(v *Validator, at string, list []*graphdv1.Step) []approval.Step {
	var steps []approval.Step
	for i, s := range list[:min(len(list), approval.MaxSteps+1)] {
		here := elementPath(at, i)
		step := approval.Step{After: v.convertPositiveDuration(here+".after", s.GetAfter())}
		people := s.GetRemind()
		switch action := s.GetAction().(type) {
		case *graphdv1.Step_Remind:
			if action.Remind.GetPriority() != graphdv1.Priority_PRIORITY_UNSPECIFIED {
				v.AddViolation(here+".remind.priority", "is not allowed: a reminder changes no priority")
			}
		case *graphdv1.Step_Escalate:
			step.Escalates, people = true, action.Escalate
			step.Priority = priorityFromProto(v, here+".escalate.priority", people.GetPriority())
			if people.GetPriority() == graphdv1.Priority_PRIORITY_NORMAL {
				v.AddViolation(here+".escalate.priority", "must not be PRIORITY_NORMAL; leave it out to keep the priority of the question")
			}
		default:
			v.AddViolation(here, "must remind or escalate")
		}
		step.Users, step.Groups = v.CheckNames(here+".users", people.GetUsers()), v.CheckNames(here+".groups", people.GetGroups())
		steps = append(steps, step)
	}
	return steps
}

func stepsToProto(steps []approval.Step) []*graphdv1.Step {
	var out []*graphdv1.Step
	for i := range steps {
		s := &steps[i]
		people := &graphdv1.Audience{Users: s.Users, Groups: s.Groups}
		step := &graphdv1.Step{After: DurationToProto(s.After), Action: &graphdv1.Step_Remind{Remind: people}}
		if s.Escalates {
			if s.Priority != approval.Normal {
				people.Priority = priorityToProto(s.Priority)
			}
			step.Action = &graphdv1.Step_Escalate{Escalate: people}
		}
		out = append(out, step)
	}
	return out
}

// stepSpecsFromProto converts the steps of a question in a graph.
func stepSpecsFromProto(v *Validator, at string, list []*graphdv1.Step) []graph.StepSpec {
	var specs []graph.StepSpec
	for _, s := range stepsFromProto(v, at, list) {
		spec := graph.StepSpec{After: s.After, Escalates: s.Escalates, Users: s.Users, Groups: s.Groups}
		spec.Priority = priorityWord(s.Priority)
		specs = append(specs, spec)
	}
	return specs
}

// priorityWord returns the word of a priority in a graph, "" for the usual one.
func priorityWord(p approval.Priority) string {
	if p == approval.Normal {
		return ""
	}
	return p.String()
}

func specPriorityToProto(word string) graphdv1.Priority {
	if word == "" {
		return graphdv1.Priority_PRIORITY_UNSPECIFIED
	}
	return priorityToProto(graph.PriorityOf(word))
}

// undoFromProto converts how long an answer can be taken back; unset is as the server says.
func undoFromProto(v *Validator, at string, d *durationpb.Duration) *time.Duration {
	if d == nil {
		return nil
	}
	undo := d.AsDuration()
	if problem := approval.CheckUndo(&undo); d.CheckValid() != nil || problem != "" {
		v.AddViolation(at, "%s", cmp.Or(problem, "is no duration"))
	}
	return &undo
}

func undoToProto(undo *time.Duration) *durationpb.Duration {
	if undo == nil {
		return nil
	}
	return durationpb.New(*undo)
}

func delegationsToProto(list []approval.Delegation) []*graphdv1.Delegation {
	var out []*graphdv1.Delegation
	for _, d := range list {
		out = append(out, &graphdv1.Delegation{From: d.From, To: d.To})
	}
	return out
}
