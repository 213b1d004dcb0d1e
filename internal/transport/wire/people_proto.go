package wire

import (
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
	}
}

func peopleSpecToProto(p *graph.PeopleSpec) *graphdv1.PeopleSpec {
	if p == nil {
		return nil
	}
	return &graphdv1.PeopleSpec{
		Users: p.Users.Names, UsersExpr: p.Users.Expr, Groups: p.Groups.Names, GroupsExpr: p.Groups.Expr,
		Approvals: ClampUint32(p.Approvals), Vetoes: ClampUint32(p.Vetoes), Agree: p.Agree,
		NotRequester: p.NotRequester, Requester: p.Requester, Exclusive: p.Exclusive,
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
		Exclusive: p.GetExclusive(),
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
