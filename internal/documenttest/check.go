// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package documenttest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Check returns what is wrong with the comments of the documents at root, a sentence each:
// blocks without a test or a reason, and tests that do not read documents.
func Check(root string) ([]string, error) {
	blocks, err := Read(root)
	if err != nil {
		return nil, err
	}
	var found []string
	known := map[string]error{}
	for _, b := range blocks {
		if len(b.Tests) == 0 && b.NotRun == "" {
			found = append(found, fmt.Sprintf("%s: no test runs or compares this block. Name one that does in the line before it, "+
				"<!-- test: FOLDER TestName -->, or write <!-- not run: REASON -->; go doc ./internal/documenttest", b))
		}
		for _, test := range b.Tests {
			key := path.Base(b.File) + " " + test
			if _, ok := known[key]; !ok {
				known[key] = exists(root, path.Base(b.File), test)
			}
			if known[key] != nil {
				found = append(found, fmt.Sprintf("%s: %s: %v", b, test, known[key]))
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// exists returns an error if there is no such test, or if no test of its package reads documents: by
// this package, by that of scripts, or by the name of the document, as examples do, which cannot
// import either.
func exists(root, document, test string) error {
	folder, name, ok := strings.Cut(test, " ")
	name, script, isScript := strings.Cut(name, "/")
	if !ok || !strings.HasPrefix(name, "Test") {
		return errors.New("want the folder of a package and the name of a test in it")
	}
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		return err
	}
	declared, reads := false, false
	for _, file := range files {
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		declared = declared || declares(syntax, name)
		reads = reads || mentions(syntax, document)
	}
	switch {
	case !declared:
		return errors.New("there is no such test")
	case !reads:
		return errors.New("the tests of the package neither use documenttest or scripttest.Documents nor name the document")
	case isScript:
		return scriptExists(filepath.Join(root, filepath.FromSlash(folder), "testdata"), script)
	}
	return nil
}

func declares(syntax *ast.File, test string) bool {
	return slices.ContainsFunc(syntax.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && f.Recv == nil && f.Name.Name == test
	})
}

func mentions(syntax *ast.File, document string) (found bool) {
	ast.Inspect(syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			found = found || ok && (x.Name == "documenttest" || x.Name == "scripttest" && n.Sel.Name == "Documents")
		case *ast.CallExpr: // in this package
			x, ok := n.Fun.(*ast.Ident)
			found = found || ok && x.Name == "Blocks"
		case *ast.BasicLit:
			found = found || n.Kind == token.STRING && strings.HasSuffix(strings.Trim(n.Value, "\"`"), document)
		}
		return true
	})
	return found
}

func scriptExists(testdata, script string) error {
	missing := fmt.Errorf("there is no script %s.txtar", script)
	err := filepath.WalkDir(testdata, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Base(path) == script+".txtar" {
			missing = nil
		}
		return err
	})
	return errors.Join(missing, err)
}
