package runtime

// QuestionActions is a set of what a caller may do with a question.
type QuestionActions uint16

// What a caller may do with a question.
const (
	ActionAnswer   QuestionActions = 1 << iota // answer it, vote on it, or pass the breakpoint
	ActionClaim                                // claim it, or extend the own claim
	ActionRelease                              // give the own claim up
	ActionComment                              // add a comment
	ActionDelegate                             // hand it to another user, or take it back from one
	ActionAssign                               // change the assignees
	ActionExtend                               // change the expiry
	ActionEndClaim                             // end the claim of any holder
	ActionRetract                              // take the own answer or vote back
	ActionReveal                               // see secret parts
	ActionLink                                 // make a link to it
	ActionCancel                               // cancel the run that waits
)

// Has reports whether the set has all of some others.
func (a QuestionActions) Has(others QuestionActions) bool { return a&others == others }
