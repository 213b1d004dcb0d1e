package expr

import (
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// chargeLoop charges every pass of a loop over x with the steps that syntax.RewriteTree
// counted in its body: not every step of a body is a call, which pays by itself.
func chargeLoop(m *meter, x, body ref.Val, _ []ref.Val) ref.Val {
	steps, _ := body.(types.Int)
	switch x := x.(type) {
	case traits.Lister:
		return &loopList{Lister: x, pass: loopPass{meter: m, stepsPerPass: int64(steps)}}
	case traits.Mapper:
		return &loopMap{Mapper: x, pass: loopPass{meter: m, stepsPerPass: int64(steps)}}
	}
	return x
}

// loopPass stands between a loop and its range.
type loopPass struct {
	meter        *meter
	stepsPerPass int64
	body         traits.Folder
}

// FoldEntry pays for a pass and makes it.
func (p *loopPass) FoldEntry(key, value any) bool {
	p.meter.chargeSteps(p.stepsPerPass)
	return p.body.FoldEntry(key, value)
}

// loopList is a list that only a loop sees.
type loopList struct {
	traits.Lister

	pass loopPass
}

// Fold goes over the elements.
func (l *loopList) Fold(body traits.Folder) {
	l.pass.body = body
	types.ToFoldableList(l.Lister).Fold(&l.pass)
}

// loopMap is a map that only a loop sees.
type loopMap struct {
	traits.Mapper

	pass loopPass
}

// Fold goes over the entries.
func (l *loopMap) Fold(body traits.Folder) {
	l.pass.body = body
	types.ToFoldableMap(l.Mapper).Fold(&l.pass)
}

// growingMap is the map that a loop builds. The library's map takes time with
// every entry that grows with the number of entries.
type growingMap struct {
	traits.Mapper

	entries map[ref.Val]ref.Val
}

// insertEntries adds an entry, or those of a map, to the map that a loop builds. Only
// the loop has it, so it changes in place.
func insertEntries(_ *meter, target, more ref.Val, all []ref.Val) ref.Val {
	g, ok := target.(*growingMap)
	if !ok {
		entries := map[ref.Val]ref.Val{}
		g = &growingMap{Mapper: types.NewRefValMap(types.DefaultTypeAdapter, entries), entries: entries}
	}
	if len(all) > 2 {
		return g.putEntry(more, all[2])
	}
	from, ok := more.(traits.Mapper)
	if !ok {
		return types.MaybeNoSuchOverloadErr(more)
	}
	for it := from.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		if result := g.putEntry(key, from.Get(key)); types.IsError(result) {
			return result
		}
	}
	return g
}

func (g *growingMap) putEntry(key, value ref.Val) ref.Val {
	if _, ok := keyName(key); !ok {
		return types.NewErr("a key of type %s cannot be the key of a JSON object", key.Type().TypeName())
	}
	if _, repeated := g.entries[key]; repeated {
		return types.NewErr("insert failed: key %v already exists", key)
	}
	g.entries[key] = value
	return g
}
