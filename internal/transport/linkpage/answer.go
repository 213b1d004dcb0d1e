package linkpage

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/cli/form"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
)

// readAnswer reads what was typed, and returns the answer as JSON. It returns false when
// an input has a problem, which the input shows.
func (in *input) readAnswer(typed url.Values) (answer string, ok bool) {
	in.keepTyped(typed)
	value, isThere := in.readValue()
	if !isThere && !in.hasProblem() {
		in.Problem = "is needed"
	}
	return value, !in.hasProblem()
}

// keepTyped keeps what was typed, so that the page can show it again.
func (in *input) keepTyped(typed url.Values) {
	text := strings.ReplaceAll(typed.Get(in.Name), "\r\n", "\n")
	switch in.Kind {
	case kindRadio, kindSelect:
		in.chooseOption(text)
	case kindGroup:
		for _, inner := range in.Inputs {
			inner.keepTyped(typed)
		}
	case kindConstant:
	default:
		in.Typed = text
	}
}

// readValue returns the value of an input as JSON, and false when there is none. A problem
// is noted at the input.
func (in *input) readValue() (value string, isThere bool) {
	if in.Kind == kindConstant {
		return in.field.Choices()[0], true
	}
	if in.Kind == kindGroup {
		return in.readObject()
	}
	if strings.TrimSpace(in.Typed) == "" {
		return "", false
	}
	switch in.Kind {
	case kindRadio, kindSelect:
		at, err := strconv.Atoi(in.Typed)
		if err != nil || at < 0 || at >= len(in.field.Choices()) {
			in.Problem = "is none of the choices"
			return "", true
		}
		return in.field.Choices()[at], true
	case kindLine, kindText:
		return jsontext.QuoteString(in.trimTyped()), true
	case kindNumber, kindJSON:
		text := strings.TrimSpace(in.Typed)
		if err := jsontext.CheckValue(text); err != nil {
			in.Problem = "is no JSON: " + err.Error()
			if in.Kind == kindNumber {
				in.Problem = "does not fit: want " + in.field.DescribeInput()
			}
		}
		return text, true
	case kindList:
		return in.readList(), true
	default:
		return readAny(in.Typed), true
	}
}

// trimTyped returns a text without the space around it, which no person sees: another one who gives
// the same answer would not agree. A text that the page began with stays.
func (in *input) trimTyped() string {
	if in.Typed == in.initial {
		return in.Typed
	}
	return strings.TrimSpace(in.Typed)
}

// readAny reads JSON, or else a text.
func readAny(typed string) string {
	if text := strings.TrimSpace(typed); jsontext.CheckValue(text) == nil {
		return text
	}
	return jsontext.QuoteString(typed)
}

// readList reads a JSON list, or else a value on each line.
func (in *input) readList() string {
	if text := strings.TrimSpace(in.Typed); strings.HasPrefix(text, "[") && jsontext.CheckValue(text) == nil {
		return text
	}
	element := in.field.ListElement()
	var values []string
	for line := range strings.SplitSeq(in.Typed, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		value := jsontext.QuoteString(line)
		if !element.IsText() {
			var err error
			if value, err = element.ParseInput(line); err != nil {
				in.Problem = "does not fit: " + err.Error()
			}
		}
		values = append(values, value)
	}
	return "[" + strings.Join(values, ",") + "]"
}

// readObject reads the inputs of a group. An optional group without a value is left out.
func (in *input) readObject() (value string, isThere bool) {
	var members []jsontext.Member
	values, isTouched := form.Values{}, false
	for _, inner := range in.Inputs {
		value, isThere := inner.readValue()
		if !isThere {
			continue
		}
		members = append(members, jsontext.Member{Key: inner.field.Name, Value: value})
		values[inner.field.Name] = jsontext.CompactText(value)
		isTouched = isTouched || inner.Kind != kindConstant
	}
	if !isTouched && !in.IsRequired {
		in.forgetProblems()
		return "", false
	}
	for _, inner := range in.Inputs {
		if _, isThere := values[inner.field.Name]; isThere || inner.hasProblem() {
			continue
		}
		isRefused := in.field.IsRefused(inner.field.Name, values)
		if !isRefused && (inner.IsRequired || in.field.IsDemanded(inner.field.Name, values)) {
			inner.markNeeded()
		}
	}
	return jsontext.JoinObject(members), true
}

// markNeeded notes that a value is missing.
func (in *input) markNeeded() {
	if in.Kind != kindGroup {
		in.Problem = "is needed"
		return
	}
	for _, inner := range in.Inputs {
		if inner.IsRequired {
			inner.markNeeded()
		}
	}
	if !in.hasProblem() {
		in.Problem = "is needed"
	}
}

func (in *input) hasProblem() bool {
	if in.Problem != "" {
		return true
	}
	for _, inner := range in.Inputs {
		if inner.hasProblem() {
			return true
		}
	}
	return false
}

func (in *input) forgetProblems() {
	in.Problem = ""
	for _, inner := range in.Inputs {
		inner.forgetProblems()
	}
}

// showProblem notes a problem of the server at the input that a JSON pointer names, and returns
// false when there is none.
func (in *input) showProblem(pointer, problem string) bool {
	name, rest, isDeeper := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	if in.Kind != kindGroup {
		in.Problem = problem
		return true
	}
	name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
	for _, inner := range in.Inputs {
		if inner.field.Name != name || pointer == "" {
			continue
		}
		if isDeeper {
			return inner.showProblem("/"+rest, problem)
		}
		if inner.Kind == kindGroup {
			return false
		}
		inner.Problem = problem
		return true
	}
	return false
}
