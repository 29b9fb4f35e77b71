// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package where

import (
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// textFunctions work on texts. Positions count characters, as everywhere in CEL.
func textFunctions() []member {
	text, number := cel.StringType, cel.IntType
	texts := cel.ListType(text)
	var found []member
	add := func(name, id string, args []*cel.Type, result *cel.Type, do func(args ...ref.Val) ref.Val) {
		found = append(found, member{name: name, id: id, args: args, result: result, do: do})
	}
	add("charAt", "text_char_at", []*cel.Type{text, number}, text, func(args ...ref.Val) ref.Val {
		s, at := str(args[0]), num(args[1])
		if at == utf8.RuneCountInString(s) {
			return types.String("")
		}
		return substring(s, at, at+1)
	})
	add("indexOf", "text_index_of", []*cel.Type{text, text}, number, func(args ...ref.Val) ref.Val {
		return position(str(args[0]), strings.Index(str(args[0]), str(args[1])))
	})
	add("indexOf", "text_index_of_from", []*cel.Type{text, text, number}, number, func(args ...ref.Val) ref.Val {
		s, from := str(args[0]), num(args[2])
		at, ok := offset(s, from)
		if !ok {
			return types.NewErr("index out of range: %d", from)
		}
		found := strings.Index(s[at:], str(args[1]))
		if found >= 0 {
			found += at
		}
		return position(s, found)
	})
	add("lastIndexOf", "text_last_index_of", []*cel.Type{text, text}, number, func(args ...ref.Val) ref.Val {
		return position(str(args[0]), strings.LastIndex(str(args[0]), str(args[1])))
	})
	add("join", "texts_join", []*cel.Type{texts}, text, func(args ...ref.Val) ref.Val { return join(args[0], "") })
	add("join", "texts_join_by", []*cel.Type{texts, text}, text, func(args ...ref.Val) ref.Val {
		return join(args[0], str(args[1]))
	})
	add("lowerAscii", "text_lower_ascii", []*cel.Type{text}, text, func(args ...ref.Val) ref.Val {
		return types.String(ascii(str(args[0]), 'A', 'Z', 'a'-'A'))
	})
	add("upperAscii", "text_upper_ascii", []*cel.Type{text}, text, func(args ...ref.Val) ref.Val {
		return types.String(ascii(str(args[0]), 'a', 'z', 'A'-'a'))
	})
	add("replace", "text_replace", []*cel.Type{text, text, text}, text, func(args ...ref.Val) ref.Val {
		return replace(str(args[0]), str(args[1]), str(args[2]), -1)
	})
	add("replace", "text_replace_n", []*cel.Type{text, text, text, number}, text, func(args ...ref.Val) ref.Val {
		return replace(str(args[0]), str(args[1]), str(args[2]), num(args[3]))
	})
	add("split", "text_split", []*cel.Type{text, text}, texts, func(args ...ref.Val) ref.Val {
		return types.DefaultTypeAdapter.NativeToValue(strings.Split(str(args[0]), str(args[1])))
	})
	add("split", "text_split_n", []*cel.Type{text, text, number}, texts, func(args ...ref.Val) ref.Val {
		return types.DefaultTypeAdapter.NativeToValue(strings.SplitN(str(args[0]), str(args[1]), num(args[2])))
	})
	add("substring", "text_substring", []*cel.Type{text, number}, text, func(args ...ref.Val) ref.Val {
		return substring(str(args[0]), num(args[1]), -1)
	})
	add("substring", "text_substring_to", []*cel.Type{text, number, number}, text, func(args ...ref.Val) ref.Val {
		if num(args[2]) < num(args[1]) {
			return types.NewErr("invalid substring range. start: %d, end: %d", num(args[1]), num(args[2]))
		}
		return substring(str(args[0]), num(args[1]), num(args[2]))
	})
	add("trim", "text_trim", []*cel.Type{text}, text, func(args ...ref.Val) ref.Val {
		return types.String(strings.TrimSpace(str(args[0])))
	})
	return found
}

// str and num return what the checker, and at run time the choice of the overload, have
// made certain.
func str(v ref.Val) string { s, _ := v.(types.String); return string(s) }
func num(v ref.Val) int    { n, _ := v.(types.Int); return int(n) }

// offset returns where in bytes a character is; one position is behind the last.
func offset(s string, character int) (int, bool) {
	if character < 0 || character > len(s) {
		return 0, false
	}
	for at := range s {
		if character == 0 {
			return at, true
		}
		character--
	}
	return len(s), character == 0
}

// position returns which character a byte belongs to, -1 for none.
func position(s string, at int) ref.Val {
	if at < 0 {
		return types.Int(-1)
	}
	return types.Int(utf8.RuneCountInString(s[:at]))
}

// substring returns the characters of s from one to before another, -1 being the end.
func substring(s string, from, to int) ref.Val {
	start, ok := offset(s, from)
	if !ok {
		return types.NewErr("index out of range: %d", from)
	}
	if to == -1 {
		return types.String(s[start:])
	}
	length, ok := offset(s[start:], to-from)
	if !ok {
		return types.NewErr("index out of range: %d", to)
	}
	return types.String(s[start : start+length])
}

func ascii(s string, first, last, move rune) string {
	return strings.Map(func(r rune) rune {
		if first <= r && r <= last {
			return r + move
		}
		return r
	}, s)
}

func replace(s, old, with string, n int) ref.Val {
	times := strings.Count(s, old)
	if n >= 0 {
		times = min(times, n)
	}
	if len(s)+times*max(len(with)-len(old), 0) > largestText {
		return tooLarge("the result of replace()")
	}
	return types.String(strings.Replace(s, old, with, n))
}

func join(v ref.Val, by string) ref.Val {
	list, ok := v.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(v)
	}
	var b strings.Builder
	first := true
	for it := list.Iterator(); it.HasNext() == types.True; first = false {
		next, ok := it.Next().(types.String)
		if !ok {
			return types.NewErr("join() of something that is not text")
		}
		if !first {
			b.WriteString(by)
		}
		b.WriteString(string(next))
		if b.Len() > largestText {
			return tooLarge("the result of join()")
		}
	}
	return types.String(b.String())
}
