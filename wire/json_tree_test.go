// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/json"
)

// both decodes with the reader of trees alone, and with the decoder that it stands for.
func both(t *testing.T, raw []byte) (got, want map[string]any, decoded bool, err error) {
	t.Helper()
	reader, _ := trees.Get().(*treeReader)
	defer trees.Put(reader)
	reader.data, reader.at, reader.elements = raw, 0, nil
	got, decoded = reader.whole()
	err = json.UnmarshalCaseSensitivePreserveInts(raw, &want)
	return got, want, decoded, err
}

func TestATreeIsWhatTheOtherDecoderMakes(t *testing.T) {
	for _, text := range []string{
		`{}`, ` { "a" : [ ] , "b" : { } } `, "{\"a\":\t1}\r\n", `{"a":null,"b":true,"c":false}`,
		`{"a":0,"b":-1,"c":9223372036854775807,"d":-0,"e":255,"f":256}`, `{"a":1.0,"b":-0.5,"c":1e3,"d":1E-3,"e":0.1e+2}`,
		`{"a":[1,"x",[2,[]],{"b":[{}]}]}`, `{"a":1,"a":{"b":2},"a":{"c":3}}`,
		`{"a\"b":"\b\f\n\r\t\/\\\u00e9\u0000","ü":"日本語"}`, `{"":""}`,
		`{"long":"` + strings.Repeat("x", 200) + `","` + strings.Repeat("y", 200) + `":"\n` + strings.Repeat("z", 200) + `"}`,
		strings.Repeat(`{"a":[`, 50) + strings.Repeat(`]}`, 50),
	} {
		got, want, decoded, err := both(t, []byte(text))
		if err != nil || !decoded || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v (decoded: %v), want %#v, %v", text, got, decoded, want, err)
		}
	}
}

// What is wrong or rare is left to the other decoder, which has the words for it.
func TestATreeThatIsNotReadIsDecodedAllTheSame(t *testing.T) {
	for _, text := range []string{
		``, ` `, `null`, `[]`, `"a"`, `1`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{a:1}`, `{"a" 1}`, `{"a":1}}`, `{"a":1 "b":2}`,
		`{"a":[1,]}`, `{"a":[1`, `{"a":[1 2]}`, `{"a":01}`, `{"a":1.}`, `{"a":+1}`, `{"a":tru}`, `{"a":nul}`, `{"a":"\x"}`, `{"a":"\u12"}`,
		"{\"a\":\"\n\"}", "{\"a\":\"\\n\n\"}", `{"a":"`, `{"a":"\`, `{"a":"\n`,
		`{"a":"\ud83d\ude00"}`, `{"a":"\ud83d"}`, "{\"a\":\"\xff\"}", "{\"\xff\":1}", "{\"a\":\"\\n\xff\"}",
		`{"a":9223372036854775808}`, `{"a":1e400}`, `{"a":` + strings.Repeat("1", 100) + `}`,
		strings.Repeat(`{"a":[`, 5000) + strings.Repeat(`]}`, 5000), strings.Repeat(`{"a":`, 20000),
	} {
		var want map[string]any
		wantErr := json.UnmarshalCaseSensitivePreserveInts([]byte(text), &want)
		got, err := decodeTree([]byte(text))
		if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() || !reflect.DeepEqual(got, want) {
			t.Errorf("%.80s: %v, %v; want %v, %v", text, got, err, want, wantErr)
		}
	}
}

// A text that is remembered is that text, whatever else has its place.
func TestTextsAreNotMixedUp(t *testing.T) {
	var b strings.Builder
	b.WriteString("{")
	for i := range 5 * knownNames {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(`"name` + strings.Repeat("i", i%40) + string(rune('a'+i%26)) + `":"word` + string(rune('a'+i%7)) + strings.Repeat("j", i%40) + `"`)
	}
	b.WriteString("}")
	for range 2 {
		got, want, decoded, err := both(t, []byte(b.String()))
		if err != nil || !decoded || !reflect.DeepEqual(got, want) {
			t.Errorf("decoded: %v, %d members, want %d, %v", decoded, len(got), len(want), err)
		}
	}
}

func FuzzDecodeTree(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,2.5,"x",null,true,{"b":{}}]}`, `{"a":"\u00e9\n","a":-0}`, `{"a":"\ud83d\ude00"}`, "{\"\xff\":\"\xff\"}", `{"a":1e5,"b":9223372036854775808}`, ` {"a" : [ ] } x`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		kept := string(raw)
		var want map[string]any
		wantErr := json.UnmarshalCaseSensitivePreserveInts(raw, &want)
		got, err := decodeTree(raw)
		if (err == nil) != (wantErr == nil) || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %#v, %v; want %#v, %v", raw, got, err, want, wantErr)
		}
		// Nothing of it may point into the bytes, which belong to the caller.
		clear(raw)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: the tree changes with the bytes", kept)
		}
	})
}
