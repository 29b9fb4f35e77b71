// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package houserules

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// Documentation holds that each folder with Go code has a doc.go whose comment
// introduces the package, and that each package which users can import has an
// example whose output is checked. Files are slash-separated and relative to
// root, those below testdata left out.
func Documentation(root string, files []string) ([]string, error) {
	folders := map[string][]string{}
	for _, file := range files {
		if strings.HasSuffix(file, ".go") {
			folder := filepath.ToSlash(filepath.Dir(file))
			folders[folder] = append(folders[folder], file)
		}
	}
	var found []string
	for folder, files := range folders {
		introduced, example, isMain := false, false, false
		for _, file := range files {
			syntax, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ParseComments)
			if err != nil {
				return nil, fmt.Errorf("reading documentation: %w", err)
			}
			isMain = isMain || syntax.Name.Name == "main"
			introduced = introduced || filepath.Base(file) == "doc.go" && syntax.Doc.Text() != ""
			example = example || strings.HasSuffix(file, "_test.go") && hasCheckedExample(syntax)
		}
		if !introduced {
			found = append(found, folder+": has no doc.go that introduces the package")
		}
		private := isMain || slices.Contains(strings.Split(folder, "/"), "internal")
		if !private && !example {
			found = append(found, folder+": has no example with an output that is checked")
		}
	}
	slices.Sort(found)
	return found, nil
}

func hasCheckedExample(syntax *ast.File) bool {
	return slices.ContainsFunc(doc.Examples(syntax), func(example *doc.Example) bool {
		return example.Output != "" || example.EmptyOutput
	})
}
