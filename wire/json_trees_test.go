// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// checkTrees holds two trees that were decoded together against those that are decoded each alone.
func checkTrees(t *testing.T, before, after []byte) {
	t.Helper()
	was, err1 := decodeTree(before)
	is, err2 := decodeTree(after)
	gotWas, gotIs, err := DecodeTrees(before, after)
	if err1 != nil || err2 != nil {
		if err == nil {
			t.Errorf("%.200s and %.200s: no error, want %v, %v", before, after, err1, err2)
		}
		return
	}
	if err != nil || !reflect.DeepEqual(gotWas, was) || !reflect.DeepEqual(gotIs, is) {
		t.Errorf("%.200s and %.200s: %#v and %#v, %v; want %#v and %#v", before, after, gotWas, gotIs, err, was, is)
	}
}

var pairTexts = []string{
	`{}`, ` { } `, `{"a":1}`, `{"a":12}`, `{"a":1 }`, `{"a":1.5}`, `{"a":1e5}`, `{"a":-1}`, `{"a":true}`, `{"a":"true"}`, `{"a":null}`, `{"a":{}}`, `{"a":[]}`,
	`{"a":1,"b":2}`, `{"b":2,"a":1}`, `{"a":1,"b":{"c":[1,2,{"d":3}]}}`, `{"a":1,"b":{"c":[1,2,{"d":4}]}}`, `{"a":1,"b":{"c":[1,2]}}`, `{"a":1,"b":{"c":[]}}`,
	`{"a":[{"x":1},{"y":2}]}`, `{"a":[{"y":2}]}`, `{"a":[{"x":1},{"y":2},{"z":3}]}`, `{"a":[[1],[2]]}`, `{"a":[[1],[3]],"b":"x"}`,
	`{"a":1,"a":2}`, `{"a":1,"a":3}`, `{"a":{"b":1},"a":{"b":1}}`, `{"a" : 1}`, `{"\u0061":1}`, `{"a":"\u0061"}`, `{"a":"a"}`, `{"a":"ab"}`,
	`{"a":1,"b":2,"c":3}`, `{"a":1,"c":3}`, `{"a":0,"c":3}`, `{"a":1,"n":9,"b":2}`,
	`{`, `{"a"`, `{"a":}`, `{"a":1,}`, `[]`, ``, `{"a":1}}`, `{"a":[1,]}`, `{"a":9223372036854775808}`, "{\"a\":\"\xff\"}",
}

func TestTreesAreThoseThatAreDecodedAlone(t *testing.T) {
	for _, before := range pairTexts {
		for _, after := range pairTexts {
			checkTrees(t, []byte(before), []byte(after))
		}
	}
	deep := strings.Repeat(`{"a":[`, 150) + strings.Repeat(`]}`, 150)
	checkTrees(t, []byte(deep), []byte(deep))
}

func TestTreesShareWhatIsEqual(t *testing.T) {
	const text = `{"kind":"Pod","metadata":{"labels":{"a":"b"},"resourceVersion":"%d"},"spec":{"containers":[{"name":"x","ports":[{"p":1}]},{"name":"%s","ports":[{"p":2}]}]},"status":{"a":[1,2]}}`
	was, is, err := DecodeTrees(fmt.Appendf(nil, text, 1, "y"), fmt.Appendf(nil, text, 2, "z"))
	if err != nil {
		t.Fatal(err)
	}
	shared := func(path ...any) bool {
		var a, b any = was, is
		for _, step := range path {
			switch step := step.(type) {
			case string:
				a, b = a.(map[string]any)[step], b.(map[string]any)[step]
			case int:
				a, b = a.([]any)[step], b.([]any)[step]
			}
		}
		return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
	}
	for _, path := range [][]any{{"status"}, {"metadata", "labels"}, {"spec", "containers", 0}, {"spec", "containers", 1, "ports"}} {
		if !shared(path...) {
			t.Errorf("%v is equal and not shared", path)
		}
	}
	for _, path := range [][]any{{}, {"metadata"}, {"spec"}, {"spec", "containers"}, {"spec", "containers", 1}} {
		if shared(path...) {
			t.Errorf("%v is shared and not equal", path)
		}
	}
	was, is, err = DecodeTrees([]byte(`{"a":{"b":1}}`), []byte(`{"a":{"b":1}}`))
	if err != nil || reflect.ValueOf(was).Pointer() != reflect.ValueOf(is).Pointer() {
		t.Errorf("states that are equal are not shared as a whole: %v, %v, %v", was, is, err)
	}
}

// Random trees, of which the second has some values changed, removed and added.
func TestTreesOfRandomStates(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var value func(depth int, change bool, r *rand.Rand) string
	value = func(depth int, change bool, r *rand.Rand) string {
		other := change && random.IntN(12) == 0 // the random numbers of r stay the same for both states
		kind, n, same := r.IntN(6), r.IntN(4), r.IntN(1000)
		if other {
			return fmt.Sprintf(`{"other":%d}`, same)
		}
		switch {
		case depth < 5 && kind < 3:
			var parts []string
			for i := range n {
				inner := rand.New(rand.NewPCG(r.Uint64(), 1))
				if change && random.IntN(12) == 0 {
					continue
				}
				parts = append(parts, fmt.Sprintf(`"n%d":%s`, i, value(depth+1, change, inner)))
			}
			return "{" + strings.Join(parts, ",") + "}"
		case depth < 5 && kind == 3:
			var parts []string
			for range n {
				parts = append(parts, value(depth+1, change, rand.New(rand.NewPCG(r.Uint64(), 2))))
			}
			return "[" + strings.Join(parts, ",") + "]"
		case kind == 4:
			return fmt.Sprintf(`"text%d"`, same)
		}
		return fmt.Sprint(same)
	}
	for range 2000 {
		of := random.Uint64()
		before := `{"a":` + value(0, false, rand.New(rand.NewPCG(of, 0))) + `}`
		after := `{"a":` + value(0, true, rand.New(rand.NewPCG(of, 0))) + `}`
		checkTrees(t, []byte(before), []byte(after))
	}
}

func FuzzDecodeTrees(f *testing.F) {
	for i, text := range pairTexts {
		f.Add([]byte(text), []byte(pairTexts[(i+1)%len(pairTexts)]))
	}
	f.Fuzz(func(t *testing.T, before, after []byte) { checkTrees(t, before, after) })
}
