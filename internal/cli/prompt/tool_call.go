package prompt

import "github.com/graphd-dev/graphd/internal/cli/form"

// startWithCall lets the fields of a decision about the call of a tool begin with the
// arguments of the call: who edits them types only what is to be different. The person is not asked
// for the tool, which stays.
func (a *answerFields) startWithCall(call form.ToolCall) {
	if tool := a.indexOf("name", topLevel); tool >= 0 && a.indexOf("type", topLevel) >= 0 {
		a.list[tool].isSettled = a.list[tool].IsConstant()
	}
	arguments := a.indexOf("args", topLevel)
	if arguments < 0 {
		return
	}
	a.setValue(arguments, call.Arguments)
	for i := range a.list {
		if !a.isIn(i, arguments) {
			continue
		}
		a.dropUnknown(i)
		if up := a.list[i].parent; up != topLevel && a.list[up].value != "" {
			a.list[i].Default = "" // what the call leaves out stays so
		}
	}
}

// isIn reports whether a field is an object, or is in it.
func (a *answerFields) isIn(i, object int) bool {
	for ; i != topLevel; i = a.list[i].parent {
		if i == object {
			return true
		}
	}
	return false
}

// dropUnknown leaves out what an object does not take.
func (a *answerFields) dropUnknown(i int) {
	if field := &a.list[i]; field.isByParts && field.IsClosed && field.value != "" {
		field.value = "{}"
	}
}
