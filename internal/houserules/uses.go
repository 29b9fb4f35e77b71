// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package houserules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A use is one place where a file names something of another package, or
// imports that package without naming anything of it there.
type use struct {
	path string // import path, or empty for what is built into the language
	name string // "_" for an import for its side effects, "." for a dot import
	at   string // "file.go:12"
}

// uses lists what the files that the package is built from name of other
// packages, in the order of the text.
func (p *Package) uses() ([]use, error) {
	var found []use
	for _, file := range slices.Concat(p.GoFiles, p.CgoFiles) {
		files := token.NewFileSet()
		syntax, err := parser.ParseFile(files, filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("looking for what %s uses: %w", p.ImportPath, err)
		}
		add := func(node ast.Node, path, name string) {
			found = append(found, use{path, name, fmt.Sprintf("%s:%d", file, files.Position(node.Pos()).Line)})
		}
		imported := map[string]string{} // name in this file -> import path
		for _, spec := range syntax.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return nil, fmt.Errorf("looking for what %s uses: import %s: %w", p.ImportPath, spec.Path.Value, err)
			}
			switch {
			case spec.Name == nil:
				imported[path[strings.LastIndex(path, "/")+1:]] = path
			case spec.Name.Name == "_", spec.Name.Name == ".":
				add(spec, path, spec.Name.Name)
			default:
				imported[spec.Name.Name] = path
			}
		}
		ast.Inspect(syntax, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.SelectorExpr:
				if name, ok := node.X.(*ast.Ident); ok && imported[name.Name] != "" {
					add(node, imported[name.Name], node.Sel.Name)
				}
			case *ast.CallExpr:
				if name, ok := node.Fun.(*ast.Ident); ok {
					add(node, "", name.Name)
				}
			}
			return true
		})
	}
	return found, nil
}
