// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
)

// gatesOf returns the names of the gates that a file declares: the string constants of a
// type called Feature, and those without type that are keys of a list of gates.
func gatesOf(file string) ([]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	listed := keys(parsed)
	var names []string
	for _, declaration := range parsed.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, s := range group.Specs {
			constant := s.(*ast.ValueSpec)
			for i, value := range constant.Values {
				if typeName(constant.Type) != "Feature" && !listed[constant.Names[i].Name] {
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
				names = append(names, name)
			}
		}
	}
	return names, nil
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

// keys are the constants that are keys of lists of gates: maps from Feature, and kubeadm's
// FeatureList.
func keys(file *ast.File) map[string]bool {
	found := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		list, ok := n.(*ast.CompositeLit)
		if !ok || !listsGates(list.Type) {
			return true
		}
		for _, element := range list.Elts {
			if pair, ok := element.(*ast.KeyValueExpr); ok {
				found[typeName(pair.Key)] = true
			}
		}
		return false
	})
	return found
}
