package expr_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/payload"
)

// stateFields is a graph.Reader over fields in order.
type stateFields []payload.Field

func (s stateFields) Lookup(key string) (payload.JSON, bool) {
	for _, f := range s {
		if f.Key == key {
			return f.Value, true
		}
	}
	return "", false
}

func (s stateFields) Keys() []string {
	keys := make([]string, len(s))
	for i := range s {
		keys[i] = s[i].Key
	}
	return keys
}

func newCompiler(tb testing.TB) *expr.Compiler {
	tb.Helper()
	c, err := expr.New(expr.Options{})
	require.NoError(tb, err)
	return c
}

func testVars() graph.Vars {
	return graph.Vars{
		State: stateFields{
			{Key: "n", Value: "3"},
			{Key: "price", Value: "19.990"},
			{Key: "rate", Value: "1.5"},
			{Key: "big", Value: "9007199254740993"},
			{Key: "huge", Value: "18446744073709551616"},
			{Key: "far", Value: "1e400"},
			{Key: "deep", Value: `{"far":[-1e500]}`},
			{Key: "digits", Value: payload.JSON(strings.Repeat("7", 400))},
			{Key: "text", Value: `"我要退款 <b>"`},
			{Key: "obj", Value: `{"z": 1.0, "a": {"deep": 1e2}, "m": [1, 2.50]}`},
			{Key: "list", Value: `[ 3, 1.0, 2.50 ]`},
			{Key: "none", Value: "null"},
			{Key: "items", Value: `[{"id":"a","qty":2,"cost":1.10},{"id":"b","qty":1,"cost":20}]`},
		},
		Answer:  `{"decision":"approved","amount":1.10}`,
		Input:   `{"city":"Graz"}`,
		Context: `{"tenant":"acme","names":["x","y"]}`,
	}
}

func TestEval(t *testing.T) {
	tests := map[string]struct{ source, want string }{
		"literal":                     {`1 + 2`, `3`},
		"carried integer":             {`state.big`, `9007199254740993`},
		"carried beyond 64 bits":      {`state.huge`, `18446744073709551616`},
		"carried spelling":            {`state.price`, `19.990`},
		"carried beyond floats":       {`{"v": [state.far, state.huge]}`, `{"v":[1e400,18446744073709551616]}`},
		"carried object":              {`state.obj`, `{"z": 1.0, "a": {"deep": 1e2}, "m": [1, 2.50]}`},
		"carried part":                {`state.obj.a`, `{"deep": 1e2}`},
		"carried leaf":                {`state.obj.a.deep`, `1e2`},
		"carried element":             {`state.list[2]`, `2.50`},
		"carried through ternary":     {`state.n > 2 ? state.price : 0.0`, `19.990`},
		"carried through optional":    {`state.?price.orValue(0)`, `19.990`},
		"carried through map":         {`state.list.map(x, {"v": x})`, `[{"v":3},{"v":1.0},{"v":2.50}]`},
		"carried through filter":      {`state.list.filter(x, x > 1.5)`, `[3,2.50]`},
		"carried through slice":       {`state.list.slice(1, 3)`, `[1.0,2.50]`},
		"carried through append":      {`state.list + [state.far]`, `[3,1.0,2.50,1e400]`},
		"carried state":               {`{"n": state.n, "all": size(state)}`, `{"n":3,"all":13}`},
		"far beside":                  {`type(state.far) == double && state.far != null ? string(state.far) : ""`, `"1e400"`},
		"key order is the author's":   {`{"z": 1, "a": 2, "m": {"y": 1, "b": 2}}`, `{"z":1,"a":2,"m":{"y":1,"b":2}}`},
		"number keys":                 {`{1: "x"}`, `{"1":"x"}`},
		"whole and fraction":          {`state.n * state.rate`, `4.5`},
		"fraction and whole":          {`1.5 + state.n`, `4.5`},
		"spelled fraction":            {`1.5 + state.price`, `21.49`},
		"spelled fraction, left":      {`state.price + 1`, `20.99`},
		"whole fraction stays one":    {`state.rate * 2`, `3.0`},
		"integer division":            {`state.n / 2`, `1`},
		"negate":                      {`-state.price`, `-19.99`},
		"compare spelled":             {`state.price == 19.99 && 19.99 == state.price && state.price <= 20`, `true`},
		"compare whole and fraction":  {`state.list[1] == 1`, `true`},
		"in":                          {`2.5 in state.list`, `true`},
		"in a literal":                {`2.5 in [state.list[2]]`, `true`},
		"equal maps":                  {`state.obj == {"z": 1, "a": {"deep": 100}, "m": [1, 2.5]}`, `true`},
		"unequal maps":                {`state.obj == {"z": 1}`, `false`},
		"math on spelled":             {`math.greatest(state.list)`, `3`},
		"string of a spelled number":  {`"costs " + string(state.price)`, `"costs 19.990"`},
		"string of a huge number":     {`string(state.huge)`, `"18446744073709551616"`},
		"double of a string":          {`double("2.5") + 1`, `3.5`},
		"unicode":                     {`state.text.contains("退款")`, `true`},
		"no html escaping":            {`state.text`, `"我要退款 <b>"`},
		"join":                        {`state.items.map(i, i.id).join(", ")`, `"a, b"`},
		"sum by fold":                 {`state.items.map(i, i.qty * i.cost)`, `[2.2,20]`},
		"sort":                        {`state.list.map(x, double(x)).sort()`, `[1.0,2.5,3.0]`},
		"exists":                      {`state.items.exists(i, i.cost > 10)`, `true`},
		"map over keys keeps order":   {`state.obj.map(k, k)`, `["z","a","m"]`},
		"two variables":               {`state.list.transformList(i, v, i > 0, v)`, `[1.0,2.50]`},
		"transformMap":                {`state.obj.transformMap(k, v, k != "z", k)`, `{"a":"a","m":"m"}`},
		"bind":                        {`cel.bind(x, state.n + 1, x * x)`, `16`},
		"null":                        {`state.none == null ? "nothing" : "thing"`, `"nothing"`},
		"has":                         {`has(state.n) && !has(state.nope) && has(state.obj.a.deep)`, `true`},
		"optional missing":            {`state.?nope.orValue("default")`, `"default"`},
		"optional deep":               {`state.?obj.?nope.?x.orValue(1)`, `1`},
		"optional entry":              {`{?"a": state.?n, ?"b": state.?nope}`, `{"a":3}`},
		"answer":                      {`answer.decision + ":" + context.tenant + ":" + input.city`, `"approved:acme:Graz"`},
		"answer carried":              {`answer`, `{"decision":"approved","amount":1.10}`},
		"no error is null":            {`error == null`, `true`},
		"index by variable":           {`state.list[state.n - 2]`, `1.0`},
		"index by key":                {`state["text"].size()`, `8`},
		"END":                         {`state.n > 1 ? END : "again"`, `"__end__"`},
		"send":                        {`state.items.map(i, send("work", i))`, `[{"$send":["work",{"id":"a","qty":2,"cost":1.10}]},{"$send":["work",{"id":"b","qty":1,"cost":20}]}]`},
		"send and names":              {`[send("work", state.price), END]`, `[{"$send":["work",19.990]},"__end__"]`},
		"bytes":                       {`b"abc"`, `"YWJj"`},
		"timestamp":                   {`timestamp("2026-01-02T03:04:05Z") + duration("1h")`, `"2026-01-02T04:04:05Z"`},
		"duration":                    {`duration("90s")`, `"90s"`},
		"string join of literal list": {`["a", state.text].join("-")`, `"a-我要退款 <b>"`},
		"quotes":                      {`"say \"hi\"\n"`, `"say \"hi\"\n"`},
		"size of a missing default":   {`size(state.list) + size(state.obj)`, `6`},
		"exists_one and all":          {`state.list.all(x, x >= 1) && state.list.exists_one(x, x == 3)`, `true`},
		"distinct":                    {`[1, 1, 2].distinct()`, `[1,2]`},
		"list concatenation in fold":  {`[[1], [2, state.price]].flatten()`, `[1,2,19.990]`},
		"literals of both kinds":      {`1.5 * 2`, `3.0`},
		"join of carried strings":     {`state.obj.transformList(k, v, k).join("+") + input.map(k, input[k]).join()`, `"z+a+mGraz"`},
		"join of a carried list":      {`context.names.join("/")`, `"x/y"`},
		"sets":                        {`sets.contains(state.list, [1, 2.5])`, `true`},
		"type":                        {`type(state.price) == double && type(state.n) == int`, `true`},
	}
	c := newCompiler(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := c.Compile(test.source)
			require.NoError(t, err)
			got, err := p.Eval(testVars())
			require.NoError(t, err)
			require.Equal(t, test.want, string(got))
		})
	}
}

func TestEvalErrors(t *testing.T) {
	tests := map[string]struct{ source, want string }{
		"missing state key":  {`state.prcie > 1`, `state has no key "prcie"; did you mean "price"?`},
		"missing deep key":   {`state.obj.a.dep`, `state.obj.a has no key "dep"; did you mean "deep"?; known: deep`},
		"missing answer key": {`answer.reason`, `answer has no key "reason"; known: amount, decision`},
		"missing element":    {`state.list[9]`, `index out of bounds: 9`},
		"key of nothing":     {`state.none.x`, `no such`},
		"string and int":     {`"n: " + state.n`, `cannot add string and int; convert one of them`},
		"int and list":       {`state.n + state.list`, `cannot add int and list`},
		"too large to add":   {`state.huge + 1`, `expressions compute with 64-bit integers`},
		"overflow":           {`state.big * state.big`, `overflow`},
		"division by zero":   {`state.n / 0`, `division by zero`},
		"far and far":        {`state.far == state.far`, `the number 1e400 is beyond the range of fractions`},
		"far is no infinity": {`math.isInf(state.far)`, `beyond the range`},
		"far is ordered":     {`state.far > 1 || true`, `beyond the range`},
		"far in a list":      {`[state.far] == [1.5]`, `beyond the range`},
		"far below":          {`state.deep == {"far": [1.5]}`, `the number -1e500 is beyond the range`},
		"far in an element":  {`1.5 in state.deep.far`, `beyond the range`},
		"far and an operand": {`state.far * 0.0`, `beyond the range`},
		"far negated":        {`-state.far`, `beyond the range`},
		"far of many digits": {`state.digits == 1.0`, `the number ` + strings.Repeat("7", 40) + `… is beyond`},
		"no JSON number":     {`1.0 / 0.0`, `not a JSON number`},
		"absent":             {`state.?nope`, `.orValue(`},
		"type value":         {`type(1)`, `has no JSON form`},
		"key twice":          {`{state.text: 1, state.text: 2}`, `twice`},
		"bad key":            {`{null: 1}`, `key`},
	}
	c := newCompiler(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := c.Compile(test.source)
			require.NoError(t, err)
			got, err := p.Eval(testVars())
			require.ErrorContains(t, err, test.want, "result %s", got)
			require.ErrorAs(t, err, new(*expr.EvalError))
		})
	}
}

func TestCompileErrors(t *testing.T) {
	tests := map[string]struct{ source, want string }{
		"undeclared":         {`1 +  stat.x`, `1:6: nothing is called "stat" here; did you mean "state"?`},
		"unknown function":   {`foo(state.x)`, `1:4: nothing is called "foo" here`},
		"syntax":             {`state.x +`, `syntax error`},
		"wrong types":        {`1 + "a"`, `1:3: found no matching overload for '_+_'`},
		"second line":        {"state.x\n  + nope", `2:5: nothing is called "nope" here`},
		"all at once":        {`foo + bar`, `; 1:7: nothing is called "bar"`},
		"our own functions":  {`@plain(1)`, `syntax error`},
		"nested too deeply":  {`[1].map(a, [1].map(b, [1].map(c, [1].map(d, [1].map(e, e)))))`, `nesting`},
		"send needs a name":  {`send(1, 2)`, `no matching overload`},
		"empty":              {` `, `syntax error`},
		"too long":           {`"` + string(make([]byte, 20000)) + `"`, `size`},
		"invalid has":        {`has(state)`, `invalid argument to has()`},
		"assignment is none": {`state.x = 1`, `syntax error`},
	}
	c := newCompiler(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := c.Compile(test.source)
			require.ErrorContains(t, err, test.want)
			require.ErrorAs(t, err, new(*expr.CompileError))
		})
	}
}
