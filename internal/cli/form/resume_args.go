package form

import graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"

// ResumeArgsFor returns the arguments that answer one interrupt while others may be
// open.
func ResumeArgsFor(q *graphdv1.Interrupt) []string {
	if q.GetReason() == "breakpoint" {
		return []string{"resume", q.GetThreadId()}
	}
	example := ParseSchema(q.GetResponseSchema().GetJson()).ExampleText()
	return []string{"resume", q.GetThreadId(), "--answer", q.GetInterruptId() + "=" + example}
}

// ResumeArgs returns the arguments of a resume that answers the questions.
func ResumeArgs(thread string, questions []*graphdv1.Interrupt) []string {
	args := []string{"resume", thread}
	asked := WithoutBreakpoints(questions)
	for _, q := range asked {
		example := ParseSchema(q.GetResponseSchema().GetJson()).ExampleText()
		if len(asked) == 1 && len(questions) == 1 {
			return append(args, "--value", example)
		}
		args = append(args, "--answer", q.GetInterruptId()+"="+example)
	}
	return args
}

// WithoutBreakpoints returns the questions without breakpoints, which need no
// answer.
func WithoutBreakpoints(questions []*graphdv1.Interrupt) []*graphdv1.Interrupt {
	var asked []*graphdv1.Interrupt
	for _, q := range questions {
		if q.GetReason() != "breakpoint" {
			asked = append(asked, q)
		}
	}
	return asked
}
