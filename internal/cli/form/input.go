package form

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/cli/jsontext"
	"github.com/graphd-dev/graphd/internal/visible"
)

// Fields returns the fields of an answer that is an object, in the order of the schema;
// none for every other answer.
func (f Form) Fields() []Field {
	if f.typeText != "" || len(f.choices) > 0 {
		return nil
	}
	return f.fields
}

// FieldNamed returns a field, also one that a condition of the schema adds. It returns a
// field for any value when the form knows none of the name.
func (f Form) FieldNamed(name string) Field {
	all := f.fields
	for _, c := range f.cases {
		all = append(slices.Clip(all), c.then.fields...)
	}
	for _, field := range all {
		if field.Name == name {
			return field
		}
	}
	return Field{Name: name}
}

// IsAny reports whether the form knows nothing of the answer.
func (f Form) IsAny() bool {
	return f.isUnknown || len(f.choices) == 0 && f.typeText == "" && f.sample == "" && len(f.fields) == 0
}

// HasChoices reports whether the answer is one of some values and nothing else.
func (f Form) HasChoices() bool { return len(f.choices) > 0 && !f.isAlternative }

// IsText reports whether the answer is a text and nothing else.
func (f Form) IsText() bool { return f.typeText == textType && len(f.choices) == 0 && !f.isAlternative }

// IsObject reports whether the answer may be an object.
func (f Form) IsObject() bool { return f.isAlternative || f.typeText == "" && len(f.choices) == 0 }

// IsNested reports whether the answer is an object with known fields and nothing else.
func (f Form) IsNested() bool { return len(f.Fields()) > 0 && !f.isAlternative }

// IsConstant reports whether the answer is one known value and nothing else.
func (f Form) IsConstant() bool { return f.HasChoices() && len(f.choices) == 1 }

// IsNumbered reports whether a choice may be named by its number, from 1. Choices that are
// numbers themselves are not.
func (f Form) IsNumbered() bool {
	return len(f.choices) > 1 && !f.isYesNo() && !slices.ContainsFunc(f.choices, func(choice string) bool {
		text, ok := jsontext.UnquoteString(choice)
		if !ok {
			text = choice
		}
		_, err := strconv.ParseFloat(text, 64)
		return err == nil
	})
}

// isYesNo reports whether the answer is a boolean.
func (f Form) isYesNo() bool { return slices.Equal(f.choices, []string{"true", "false"}) }

// DescribeInput describes what a person may type: "1 approved, 2 rejected", "yes or no".
func (f Form) DescribeInput() string {
	text := f.describeOwnInput()
	if f.isAlternative && len(f.fields) == 0 {
		text += ", or JSON"
	}
	return text
}

func (f Form) describeOwnInput() string {
	switch {
	case f.isYesNo():
		return "yes or no"
	case len(f.choices) > 0:
		words := unquoteAll(f.choices)
		for i := range words {
			if f.IsNumbered() {
				words[i] = strconv.Itoa(i+1) + " " + words[i]
			}
		}
		if more := len(words) - maxShownChoices; more > 0 {
			words = append(words[:maxShownChoices], "and "+strconv.Itoa(more)+" more")
		}
		return strings.Join(words, ", ")
	case f.element != nil:
		return f.element.describeOwnInput() + "; several with commas"
	case f.typeText == listType || len(f.fields) > 0 || f.sample == "{}":
		return "JSON, like " + visible.JSON(f.sampleAnswer())
	case f.typeText != "":
		return f.typeText
	}
	return "JSON or text"
}

// maxShownChoices is the number of choices that a prompt shows.
const maxShownChoices = 20

// ParseInput turns what a person types into JSON: a choice by its number or its text, yes
// and no for a boolean, a text without its quotes. JSON stays as it is. The error says what
// would be right.
func (f Form) ParseInput(typed string) (string, error) {
	isJSON := jsontext.CheckValue(typed)
	switch {
	case f.isAlternative && len(f.fields) == 0: // the schema decides
		if isJSON == nil {
			return typed, nil
		}
		if choice, err := f.parseChoice(typed); err == nil {
			return choice, nil
		}
		return jsontext.QuoteString(typed), nil
	case len(f.choices) > 0:
		return f.parseChoice(typed)
	case f.typeText == textType || f.IsAny() && isJSON != nil:
		if _, ok := jsontext.UnquoteString(typed); ok {
			return typed, nil
		}
		return jsontext.QuoteString(typed), nil
	case f.element != nil && !strings.HasPrefix(typed, "["):
		return f.parseList(typed)
	case f.IsNumber() && !f.isOfNumberType(typed), isJSON != nil && f.typeText != "" && f.typeText != listType:
		return "", fmt.Errorf("want %s", f.typeText)
	case isJSON != nil:
		return "", fmt.Errorf("not JSON: %w", isJSON)
	}
	return typed, nil
}

// isOfNumberType reports whether JSON text is a number, or an integer where the form wants one. The
// schema decides about the rest.
func (f Form) isOfNumberType(text string) bool {
	text = strings.TrimSpace(text)
	if jsontext.CheckValue(text) != nil || !strings.ContainsAny(text[:1], "-0123456789") {
		return false
	}
	if !f.IsInteger() || !strings.ContainsAny(text, ".eE") {
		return true
	}
	value, err := strconv.ParseFloat(text, 64)
	return err != nil || value == math.Trunc(value)
}

func (f Form) parseChoice(typed string) (string, error) {
	for _, choice := range f.choices {
		if text, ok := jsontext.UnquoteString(choice); ok && text == typed || jsontext.CompactText(typed) == choice {
			return choice, nil
		}
	}
	if f.isYesNo() {
		switch strings.ToLower(typed) {
		case "y", "yes":
			return "true", nil
		case "n", "no":
			return "false", nil
		}
	}
	if n, err := strconv.Atoi(typed); err == nil && f.IsNumbered() && n >= 1 && n <= len(f.choices) {
		return f.choices[n-1], nil
	}
	return "", fmt.Errorf("want one of: %s", f.DescribeInput())
}
