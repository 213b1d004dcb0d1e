package items

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

func TestFiltersCompareValues(t *testing.T) {
	const value = `{"n":3.0,"big":9007199254740993,"text":"b","yes":true,"none":null,"o":{"a":1,"b":[1,{"c":2}]},"list":[1,"x"],"e":"\u0062"}`
	for _, c := range []struct {
		filter  string
		matches bool
	}{
		{`{}`, true},
		{`{"n":3}`, true},
		{`{"n":"3"}`, false},
		{`{"n":{"$eq":30e-1}}`, true},
		{`{"n":{"$ne":3}}`, false},
		{`{"gone":{"$ne":3}}`, true},
		{`{"n":{"$gt":2,"$lt":4}}`, true},
		{`{"n":{"$gt":3}}`, false},
		{`{"n":{"$gte":3}}`, true},
		{`{"n":{"$lt":3}}`, false},
		{`{"n":{"$lte":3}}`, true},
		{`{"big":9007199254740992}`, false},
		{`{"big":{"$gt":9007199254740992}}`, true},
		{`{"text":{"$gt":"a","$lte":"b"}}`, true},
		{`{"text":{"$gt":1}}`, false},
		{`{"text":{"$lte":1}}`, false},
		{`{"gone":{"$lt":1}}`, false},
		{`{"yes":true}`, true},
		{`{"yes":1}`, false},
		{`{"none":null}`, true},
		{`{"gone":null}`, true},
		{`{"n":null}`, false},
		{`{"o":{"a":1}}`, true},
		{`{"o":{"b":[1,{"c":{"$gte":2}}]}}`, true},
		{`{"o":{"b":[1]}}`, false},
		{`{"o":{"$eq":{"b":[1,{"c":2}],"a":1.0}}}`, true},
		{`{"n":{}}`, false},
		{`{"o":{}}`, true},
		{`{"list":[1,"x"]}`, true},
		{`{"list":["x",1]}`, false},
		{`{"e":"b"}`, true},
		{`{"n":3,"text":"c"}`, false},
	} {
		f, err := parseFilter(payload.JSON(c.filter))
		require.NoError(t, err)
		require.Equal(t, c.matches, f.matches(value), c.filter)
	}
}

// A filter that looks for each key alone takes hours here.
func TestAFilterWithManyKeysReadsAValueOnce(t *testing.T) {
	value, wanted := make([]payload.Field, 60_000), make([]payload.Field, 60_000)
	for i := range value {
		value[i] = payload.Field{Key: "v" + strconv.Itoa(i), Value: "1"}
		wanted[i] = payload.Field{Key: "w" + strconv.Itoa(i), Value: payload.Null}
	}
	f, err := parseFilter(payload.Object(wanted))
	require.NoError(t, err)
	require.True(t, f.matches(payload.Object(value)))
	f, err = parseFilter(payload.Object(value))
	require.NoError(t, err)
	require.True(t, f.matches(payload.Object(value)))
	require.False(t, f.matches(payload.Object(value[1:])))
}

func TestWrongFiltersAreRefused(t *testing.T) {
	for filter, field := range map[string]string{
		`[]`:                           "filter",
		`{"a":{"$in":[1]}}`:            "filter.a",
		`{"a":{"b":{"$gt":null}}}`:     "filter.a.b",
		`{"a":{"$gt":1,"b":2}}`:        "filter.a",
		`{"a":[{"$lt":{}}]}`:           "filter.a",
		`{"a":{"$and":[{"b":"c"}]}}`:   "filter.a",
		`{"$and":{"$or":[{"b":"c"}]}}`: "filter.$and",
	} {
		_, err := parseFilter(payload.JSON(filter))
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonInvalidField}, filter)
		refused := &runtime.Error{}
		require.ErrorAs(t, err, &refused)
		require.Equal(t, field, refused.Meta["field"], filter)
	}
}
