package schema

import (
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// listViolations lists the leaves of an error, which are the wrong places.
func listViolations(e *jsonschema.ValidationError) []runtime.Violation {
	left := maxViolations
	w := violationCollector{printer: message.NewPrinter(language.English), remaining: &left}
	w.collectViolations(e)
	if left < 0 {
		w.found = append(w.found, runtime.Violation{Description: "more is wrong than is listed here"})
	}
	return w.found
}

const (
	maxViolations  = 100 // places that are wrong
	maxDescription = 512 // bytes of the description of a place
)

type violationCollector struct {
	printer   *message.Printer
	found     []runtime.Violation
	remaining *int // places that may still be listed, including those in alternatives
}

// collectViolations adds the places of a value that violate its schema, as long as some
// remain.
func (vc *violationCollector) collectViolations(e *jsonschema.ValidationError) {
	if *vc.remaining < 0 {
		return
	}
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf, *kind.Not:
		vc.addAlternatives(e)
		return
	case *kind.Required:
		for _, name := range k.Missing {
			vc.addViolation(append(slices.Clip(e.InstanceLocation), name), "is missing")
		}
		return
	case *kind.Maximum:
		vc.addBound(e, k.Got, "more than", k.Want)
		return
	case *kind.Minimum:
		vc.addBound(e, k.Got, "less than", k.Want)
		return
	case *kind.ExclusiveMaximum:
		vc.addBound(e, k.Got, "not less than", k.Want)
		return
	case *kind.ExclusiveMinimum:
		vc.addBound(e, k.Got, "not more than", k.Want)
		return
	case *kind.MultipleOf:
		vc.addBound(e, k.Got, "no multiple of", k.Want)
		return
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			vc.addViolation(append(slices.Clip(e.InstanceLocation), name), "is not allowed here")
		}
		return
	}
	if len(e.Causes) == 0 {
		vc.addViolation(e.InstanceLocation, e.ErrorKind.LocalizedString(vc.printer))
		return
	}
	for _, cause := range e.Causes {
		vc.collectViolations(cause)
	}
}

// addAlternatives adds one violation for all alternatives, because the intended
// alternative is unknown.
func (vc *violationCollector) addAlternatives(e *jsonschema.ValidationError) {
	parts := make([]string, 0, len(e.Causes))
	for _, cause := range e.Causes {
		inner := violationCollector{printer: vc.printer, remaining: vc.remaining}
		inner.collectViolations(cause)
		for _, v := range inner.found {
			part := v.Description
			if v.Field != formatPointer(e.InstanceLocation) {
				part = v.Field + " " + part
			}
			parts = append(parts, part)
		}
	}
	text := "fits none of the alternatives"
	switch k := e.ErrorKind.(type) {
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			text = "fits more than one of the alternatives"
		}
	case *kind.Not:
		text = "is what the schema excludes"
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", or ")
	}
	vc.addViolation(e.InstanceLocation, text)
}

// addBound adds a violation with exact numbers, which the library rounds.
func (vc *violationCollector) addBound(e *jsonschema.ValidationError, got *big.Rat, is string, want *big.Rat) {
	vc.addViolation(e.InstanceLocation, formatNumber(got)+" is "+is+" "+formatNumber(want))
}

// maxPlainDigits is the length beyond which a number is written with an exponent:
// 1e400 would have 400 zeros.
const maxPlainDigits = 40

func formatNumber(r *big.Rat) string {
	digits, exact := r.FloatPrec()
	if !exact {
		return r.RatString()
	}
	text := r.FloatString(digits)
	if len(text) > maxPlainDigits {
		return string(payload.NormalText(payload.JSON(text)))
	}
	return text
}

func (vc *violationCollector) addViolation(at []string, description string) {
	if *vc.remaining--; *vc.remaining < 0 {
		return
	}
	vc.found = append(vc.found, runtime.Violation{Field: cutText(formatPointer(at)), Description: cutText(description)})
}

// formatPointer writes a place as a JSON pointer.
func formatPointer(tokens []string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(escape.Replace(t))
	}
	return b.String()
}

// cutText shortens the text of a value or a schema.
func cutText(text string) string {
	if len(text) <= maxDescription {
		return text
	}
	return strings.ToValidUTF8(text[:maxDescription], "") + "…"
}
