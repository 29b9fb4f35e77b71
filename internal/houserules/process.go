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

// everything marks a package of which nothing may be used.
const everything = "*"

// ofTheProcess is what belongs to the one who owns the process: a library that
// reads a flag or an environment variable has an input that its caller does not
// see, and one that prints or exits takes a decision that is not its own.
var ofTheProcess = map[string][]string{
	"os": {
		"Args", "Stdin", "Stdout", "Stderr", "Exit",
		"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Setenv", "Unsetenv", "Clearenv",
	},
	"syscall":                          {"Getenv", "Environ", "Setenv", "Exit"},
	"fmt":                              {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
	"os/signal":                        {everything},
	"flag":                             {everything},
	"log":                              {everything}, // writes to standard error unless told otherwise
	"github.com/spf13/pflag":           {everything},
	"github.com/spf13/cobra":           {everything},
	"k8s.io/client-go/rest":            {"InClusterConfig"},                    // reads the environment
	"k8s.io/client-go/tools/clientcmd": {"NewDefaultClientConfigLoadingRules"}, // reads KUBECONFIG
}

// Process holds that only the commands touch what belongs to the process.
func Process(tree *Tree) ([]string, error) {
	var found []string
	for _, pkg := range tree.Packages {
		if pkg.Name == "main" || under(tree.name(pkg.ImportPath), "cmd") || !pkg.shipped() {
			continue
		}
		for _, file := range slices.Concat(pkg.GoFiles, pkg.CgoFiles) {
			uses, err := processUses(filepath.Join(pkg.Dir, file))
			if err != nil {
				return nil, err
			}
			for _, use := range uses {
				found = append(found, fmt.Sprintf("%s/%s:%s, which belongs to the process; only cmd may, others take it as an argument",
					tree.name(pkg.ImportPath), file, use))
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// processUses lists, as "line: uses package.Name", where a file uses what
// ofTheProcess names.
func processUses(file string) ([]string, error) {
	files := token.NewFileSet()
	syntax, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("looking for uses of the process: %w", err)
	}
	var found []string
	add := func(at ast.Node, what string) {
		found = append(found, fmt.Sprintf("%d: uses %s", files.Position(at.Pos()).Line, what))
	}
	imported := map[string]string{} // name in this file -> import path
	for _, spec := range syntax.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: import %s: %w", file, spec.Path.Value, err)
		}
		names := ofTheProcess[path]
		switch {
		case names == nil:
		case slices.Contains(names, everything):
			add(spec, path)
		case spec.Name == nil:
			imported[path[strings.LastIndex(path, "/")+1:]] = path
		case spec.Name.Name == ".":
			add(spec, path+" by a dot import")
		default:
			imported[spec.Name.Name] = path
		}
	}
	ast.Inspect(syntax, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.SelectorExpr:
			if pkg, ok := node.X.(*ast.Ident); ok && slices.Contains(ofTheProcess[imported[pkg.Name]], node.Sel.Name) {
				add(node, pkg.Name+"."+node.Sel.Name)
			}
		case *ast.CallExpr:
			if name, ok := node.Fun.(*ast.Ident); ok && (name.Name == "print" || name.Name == "println") {
				add(node, "the built-in "+name.Name)
			}
		}
		return true
	})
	return found, nil
}
