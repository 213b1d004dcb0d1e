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

// violations lists the leaves of an error: the places that are really wrong.
func violations(e *jsonschema.ValidationError) []runtime.Violation {
	left := maxListed
	w := words{printer: message.NewPrinter(language.English), left: &left}
	w.collect(e)
	if left < 0 {
		w.found = append(w.found, runtime.Violation{Description: "more is wrong than is listed here"})
	}
	return w.found
}

const (
	maxListed      = 100 // places that are wrong
	maxDescription = 512 // bytes of what is wrong with one
)

type words struct {
	printer *message.Printer
	found   []runtime.Violation
	left    *int // places that may still be listed, those inside of alternatives included
}

func (w *words) collect(e *jsonschema.ValidationError) {
	if *w.left < 0 {
		return
	}
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf, *kind.Not:
		w.alternatives(e)
		return
	case *kind.Required:
		for _, name := range k.Missing {
			w.add(append(slices.Clip(e.InstanceLocation), name), "is missing")
		}
		return
	case *kind.Maximum:
		w.bound(e, k.Got, "more than", k.Want)
		return
	case *kind.Minimum:
		w.bound(e, k.Got, "less than", k.Want)
		return
	case *kind.ExclusiveMaximum:
		w.bound(e, k.Got, "not less than", k.Want)
		return
	case *kind.ExclusiveMinimum:
		w.bound(e, k.Got, "not more than", k.Want)
		return
	case *kind.MultipleOf:
		w.bound(e, k.Got, "no multiple of", k.Want)
		return
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			w.add(append(slices.Clip(e.InstanceLocation), name), "is not allowed here")
		}
		return
	}
	if len(e.Causes) == 0 {
		w.add(e.InstanceLocation, e.ErrorKind.LocalizedString(w.printer))
		return
	}
	for _, cause := range e.Causes {
		w.collect(cause)
	}
}

// alternatives are one violation, as none of them is the one that was meant.
func (w *words) alternatives(e *jsonschema.ValidationError) {
	parts := make([]string, 0, len(e.Causes))
	for _, cause := range e.Causes {
		inner := words{printer: w.printer, left: w.left}
		inner.collect(cause)
		for _, v := range inner.found {
			part := v.Description
			if v.Field != pointer(e.InstanceLocation) {
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
	w.add(e.InstanceLocation, text)
}

// bound tells numbers as they are: the library rounds them.
func (w *words) bound(e *jsonschema.ValidationError, got *big.Rat, is string, want *big.Rat) {
	w.add(e.InstanceLocation, decimal(got)+" is "+is+" "+decimal(want))
}

// longNumber is from how many characters on a number is told with an exponent: 1e400
// would be a one and 400 zeros.
const longNumber = 40

func decimal(r *big.Rat) string {
	digits, exact := r.FloatPrec()
	if !exact {
		return r.RatString()
	}
	text := r.FloatString(digits)
	if len(text) > longNumber {
		return string(payload.NormalText(payload.JSON(text)))
	}
	return text
}

func (w *words) add(at []string, description string) {
	if *w.left--; *w.left < 0 {
		return
	}
	w.found = append(w.found, runtime.Violation{Field: cut(pointer(at)), Description: cut(description)})
}

// pointer writes a place as a JSON pointer.
func pointer(tokens []string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(escape.Replace(t))
	}
	return b.String()
}

// cut shortens what a value or a schema says of itself.
func cut(text string) string {
	if len(text) <= maxDescription {
		return text
	}
	return strings.ToValidUTF8(text[:maxDescription], "") + "…"
}
