// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// gatesOf returns the gates that a file declares, each with the result of historyOf: the
// string constants of a type called Feature, and those without type that are keys of a list of
// gates.
func gatesOf(file string) (map[string]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	listed := keys(parsed)
	gates := map[string]string{}
	for _, declaration := range parsed.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, s := range group.Specs {
			constant := s.(*ast.ValueSpec)
			for i, value := range constant.Values {
				if _, isKey := listed[constant.Names[i].Name]; typeName(constant.Type) != "Feature" && !isKey {
					continue
				}
				if conversion, ok := value.(*ast.CallExpr); ok && len(conversion.Args) == 1 {
					value = conversion.Args[0]
				}
				text, ok := value.(*ast.BasicLit)
				if !ok || text.Kind != token.STRING {
					return nil, fmt.Errorf("%s: the constant %s is no plain string", file, constant.Names[i].Name)
				}
				name, err := strconv.Unquote(text.Value)
				if err != nil {
					return nil, fmt.Errorf("%s: %s: %w", file, text.Value, err)
				}
				gates[name] = listed[constant.Names[i].Name]
			}
		}
	}
	return gates, nil
}

// typeName returns the last part of the name of a type, and "" where there is none.
func typeName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.SelectorExpr:
		return t.Sel.Name
	}
	return ""
}

func listsGates(t ast.Expr) bool {
	if m, ok := t.(*ast.MapType); ok {
		return typeName(m.Key) == "Feature"
	}
	return typeName(t) == "FeatureList"
}

// keys are the constants that are keys of lists of gates, maps from Feature and kubeadm's
// FeatureList, with the result of historyOf for their values.
func keys(file *ast.File) map[string]string {
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		list, ok := n.(*ast.CompositeLit)
		if !ok || !listsGates(list.Type) {
			return true
		}
		for _, element := range list.Elts {
			if pair, ok := element.(*ast.KeyValueExpr); ok {
				name := typeName(pair.Key)
				found[name] = cmp.Or(historyOf(pair.Value), found[name])
			}
		}
		return false
	})
	return found
}

// historyOf returns what a gate is since which version: of each entry the minor version, the
// default, the stage, and whether it is locked to the default, such as
// "33:false:Alpha 34:true:GA:locked". It is "" for lists that do not have it, of which some say
// on which other gates one depends.
func historyOf(value ast.Expr) string {
	list, ok := value.(*ast.CompositeLit)
	if !ok {
		return ""
	}
	var entries []string
	for _, element := range list.Elts {
		entry, ok := element.(*ast.CompositeLit)
		if !ok {
			return ""
		}
		var minor, on, stage, locked string
		for _, field := range entry.Elts {
			pair, ok := field.(*ast.KeyValueExpr)
			if !ok {
				return ""
			}
			switch typeName(pair.Key) {
			case "Version":
				if call, ok := pair.Value.(*ast.CallExpr); ok && len(call.Args) == 1 {
					if text, ok := call.Args[0].(*ast.BasicLit); ok {
						minor = strings.TrimPrefix(strings.Trim(text.Value, `"`), "1.")
					}
				}
			case "Default":
				on = typeName(pair.Value)
			case "PreRelease":
				stage = typeName(pair.Value)
			case "LockToDefault":
				if typeName(pair.Value) == "true" {
					locked = ":locked"
				}
			}
		}
		if minor == "" || on == "" || stage == "" {
			return ""
		}
		entries = append(entries, minor+":"+on+":"+stage+locked)
	}
	return strings.Join(entries, " ")
}
