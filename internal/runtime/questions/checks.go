package questions

import (
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/trail"
)

// attempt is a caller who wants to do something with a question.
type attempt struct {
	*checkpoint.Interrupt

	by  approval.Voter
	now time.Time
}

// checksOfActions are the checks that each action of a caller has to pass, before it is known what the
// action is done with.
func checksOfActions() []actionCheck {
	return []actionCheck{
		{runtime.ActionAnswer, (*attempt).checkAnswer},
		{runtime.ActionClaim, (*attempt).checkClaim},
		{runtime.ActionRelease, (*attempt).checkRelease},
		{runtime.ActionComment, (*attempt).checkComment},
		{runtime.ActionDelegate, (*attempt).checkDelegate},
		{runtime.ActionAssign | runtime.ActionExtend | runtime.ActionEndClaim, (*attempt).checkOpen},
		{runtime.ActionRetract, (*attempt).checkRetract},
		{runtime.ActionReveal, (*attempt).checkReveal},
	}
}

type actionCheck struct {
	actions runtime.QuestionActions
	check   func(*attempt) error
}

// Allowed returns what a caller may do with a question, and would change something. The same checks
// refuse the changes of an Editor and answers. What the caller has no role for is not looked at.
func Allowed(q *checkpoint.Interrupt, by runtime.Actor, isContributor bool, now time.Time) (all runtime.QuestionActions) {
	a := &attempt{q, approval.Voter{Name: by.Name, Groups: by.Groups, IsContributor: isContributor}, now}
	for _, c := range checksOfActions() {
		if c.check(a) == nil {
			all |= c.actions
		}
	}
	if q.IsWaiting() {
		all |= runtime.ActionCancel
	}
	if q.ClaimHolder(now) == "" {
		all &^= runtime.ActionRelease | runtime.ActionEndClaim
	}
	if q.State == checkpoint.InterruptOpen && !a.hasVoted(by.Name) {
		all &^= runtime.ActionRetract
	}
	return all
}

func (a *attempt) checkOpen() error {
	if a.State != checkpoint.InterruptOpen {
		return ResolvedError(a.Interrupt)
	}
	return nil
}

// checkAsked refuses what takes a question that can still be answered.
func (a *attempt) checkAsked() error {
	if err := a.checkOpen(); err != nil {
		return err
	}
	if a.Reason == checkpoint.ReasonBreakpoint {
		return breakpointError(a.Interrupt)
	}
	return a.checkExpiry()
}

func (a *attempt) checkExpiry() error {
	if IsOver(a.Interrupt, a.now) {
		return ExpiredError(a.Interrupt)
	}
	return nil
}

// IsOver reports whether the time of a question is over.
func IsOver(q *checkpoint.Interrupt, now time.Time) bool {
	return !q.Expires.IsZero() && !q.Expires.After(now)
}

// checkAnswer refuses a caller who may give no answer at all. A breakpoint is passed without one.
func (a *attempt) checkAnswer() error {
	if a.Reason == checkpoint.ReasonBreakpoint {
		return a.checkOpen()
	}
	if err := a.checkAsked(); err != nil || a.Policy == nil {
		return err
	}
	if err := a.CheckVoter(a.by); err != nil {
		return RefuseVoter(a.Interrupt, err)
	}
	return CheckClaimOfVoter(a.Interrupt, a.by.Name, a.now)
}

// CheckClaimOfVoter refuses a voter who does not hold the claim of an exclusive question.
func CheckClaimOfVoter(q *checkpoint.Interrupt, voter string, now time.Time) error {
	holder := q.ClaimHolder(now)
	switch {
	case !q.Policy.Exclusive || holder == voter:
		return nil
	case holder != "":
		return ClaimedError(q)
	}
	return RefuseVoter(q, &approval.RefusalError{Rule: approval.RuleExclusive, Text: "only who has claimed it may answer; claim it first"})
}

func (a *attempt) checkClaim() error {
	if err := a.checkAsked(); err != nil {
		return err
	}
	if a.by.Name == "" {
		return RefuseVoter(a.Interrupt, &approval.RefusalError{
			Rule: approval.RuleCallers, Text: "the server does not know who calls, and a claim has a holder; start it with a way to know callers",
		})
	}
	if err := a.CheckVoter(a.by); err != nil {
		return RefuseVoter(a.Interrupt, err)
	}
	return a.checkHolder()
}

func (a *attempt) checkRelease() error {
	if err := a.checkOpen(); err != nil {
		return err
	}
	return a.checkHolder()
}

// checkHolder refuses a question that another caller has claimed.
func (a *attempt) checkHolder() error {
	if holder := a.ClaimHolder(a.now); holder != "" && holder != a.by.Name {
		return ClaimedError(a.Interrupt)
	}
	return nil
}

func (a *attempt) checkComment() error {
	if err := a.checkAsked(); err != nil {
		return err
	}
	return a.checkRoom(&trail.Entry{Kind: trail.Commented}, trail.MaxCommentBytes)
}

// checkRoom refuses an entry for which the trail has no room.
func (a *attempt) checkRoom(entry *trail.Entry, most int) error {
	if !a.Trail.HasRoom(entry, most) {
		return TrailFullError(a.Interrupt, most)
	}
	return nil
}

// checkDelegate refuses a caller who has no part in the question to hand on or to take back.
func (a *attempt) checkDelegate() error {
	if err := a.checkDelegator(); err != nil {
		return err
	}
	if err := a.checkRoom(&trail.Entry{Kind: trail.Delegated}, trail.MaxBytes); err != nil {
		return err
	}
	if delegate := a.delegateOf(a.by.Name); delegate != "" {
		return a.checkTakeBack(delegate)
	}
	return a.checkPlace()
}

// checkDelegator refuses a question that can't be handed on, and a caller who is not known.
func (a *attempt) checkDelegator() error {
	if err := a.checkAsked(); err != nil {
		return err
	}
	if a.by.Name == "" {
		return RefuseVoter(a.Interrupt, &approval.RefusalError{
			Rule: approval.RuleCallers, Text: "the server does not know who calls, and a delegate answers in the place of a caller; start it with a way to know callers",
		})
	}
	return nil
}

// checkPlace refuses a caller who has no place to hand on: one who may not answer, or, where another
// user would vote in it, one who has voted.
func (a *attempt) checkPlace() error {
	if err := a.CheckVoter(a.by); err != nil {
		return RefuseVoter(a.Interrupt, err)
	}
	if a.isDelegable() && a.hasVoted(a.by.Name) {
		return runtime.Errorf(runtime.ReasonInvalidField, "question %q has a vote of yours; take it back before another user votes in your place", a.ID).
			WithViolation("interrupt_id", "must name a question without a vote of the caller")
	}
	return nil
}

func (a *attempt) isDelegable() bool { return a.Policy != nil && a.Policy.Delegable }

// delegateOf returns who answers in the place of a user, "" = the user does.
func (a *attempt) delegateOf(name string) string {
	for _, d := range a.PropertyChanges().Delegations {
		if d.From == name {
			return d.To
		}
	}
	return ""
}

// checkTakeBack refuses to take the place of a caller back from a delegate who has voted.
func (a *attempt) checkTakeBack(delegate string) error {
	if a.hasVoted(delegate) {
		return runtime.Errorf(runtime.ReasonInvalidField, "to: %q has voted in the place of %q already", delegate, a.by.Name).
			WithViolation("to", "must name another user: the delegate has voted")
	}
	return nil
}

func (a *attempt) hasVoted(name string) bool {
	return slices.ContainsFunc(a.Votes, func(v approval.Vote) bool { return v.Voter == name })
}

// checkRetract refuses what a caller may not take back, or not any more.
func (a *attempt) checkRetract() error {
	if a.Reason == checkpoint.ReasonBreakpoint {
		return breakpointError(a.Interrupt)
	}
	isVoter := a.hasVoted(a.by.Name)
	switch a.State {
	case checkpoint.InterruptOpen:
		if !isVoter {
			return nil // and nothing changes
		}
	case checkpoint.InterruptRetractable, checkpoint.InterruptAnswered, checkpoint.InterruptConsumed:
		if !isVoter && a.Responder != a.by.Name {
			return RefuseVoter(a.Interrupt, &approval.RefusalError{Rule: approval.RuleResponder, Text: "only who has answered may take the answer back"})
		}
		if a.State != checkpoint.InterruptRetractable || !a.Effective.After(a.now) {
			return InEffectError(a.Interrupt)
		}
		if err := a.checkExpiry(); err != nil {
			return err // it would end at once, before another answer
		}
	case checkpoint.InterruptExpired, checkpoint.InterruptCancelled, checkpoint.InterruptSuperseded:
		return ResolvedError(a.Interrupt)
	}
	if a.CountEntries(trail.Retracted, a.by.Name) >= maxRetractions {
		return TooManyRetractionsError(a.Interrupt)
	}
	return nil
}

// checkReveal refuses a caller who may not see the secret parts.
func (a *attempt) checkReveal() error {
	if err := a.checkSecret(); err != nil {
		return err
	}
	if err := a.checkRevealer(); err != nil {
		return err
	}
	full := *a.Interrupt
	full.Trail = full.FullTrail()
	return (&attempt{&full, a.by, a.now}).checkRoom(&trail.Entry{Kind: trail.Revealed}, trail.MaxBytes)
}

func (a *attempt) checkSecret() error {
	if len(a.Secret) == 0 {
		return runtime.Errorf(runtime.ReasonInvalidField, "interrupt_id: question %q has no secret parts", a.ID).
			WithViolation("interrupt_id", "must name a question with secret parts")
	}
	return nil
}

func (a *attempt) checkRevealer() error {
	if err := a.VoterPolicy().CheckRevealer(a.PropertyChanges().Delegations, a.by); err != nil {
		return RefuseVoter(a.Interrupt, err)
	}
	return nil
}
