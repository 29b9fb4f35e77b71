// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package houserules

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// A Package is what the rules need to know of one package of the module and of
// what it is built from.
type Package struct {
	ImportPath   string
	Name         string
	Dir          string
	GoFiles      []string
	CgoFiles     []string
	TestGoFiles  []string
	XTestGoFiles []string
	Imports      []string // direct imports of the package itself
	TestImports  []string // direct imports of its tests inside the package
	XTestImports []string // direct imports of its tests outside the package
	Deps         []string // everything the package itself is built from
	DepOnly      bool     // not of this module, only needed by it
}

// A Tree is the root module as its users get it: without the workspace.
type Tree struct {
	Dir      string // folder of go.mod
	Module   string // module path
	Packages []*Package

	imports map[string][]string // direct imports of every package in the build
}

// Load asks the go command for the packages of the module in dir.
func Load(ctx context.Context, dir string) (*Tree, error) {
	module, err := run(ctx, dir, "list", "-m")
	if err != nil {
		return nil, err
	}
	listed, err := run(ctx, dir, "list", "-deps",
		"-json=ImportPath,Name,Dir,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports,Deps,DepOnly",
		"./...")
	if err != nil {
		return nil, err
	}
	tree := &Tree{
		Dir:     dir,
		Module:  strings.TrimSpace(string(module)),
		imports: map[string][]string{},
	}
	for decoder := json.NewDecoder(bytes.NewReader(listed)); ; {
		pkg := new(Package)
		if err := decoder.Decode(pkg); errors.Is(err, io.EOF) {
			return tree, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the output of go list in %s: %w", dir, err)
		}
		tree.imports[pkg.ImportPath] = pkg.Imports
		if !pkg.DepOnly {
			tree.Packages = append(tree.Packages, pkg)
		}
	}
}

// run is the go command in dir, outside any workspace and without the network.
func run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), dir, err, stderr.Bytes())
	}
	return out, nil
}

// name is how people call a package of the module: its path below the root.
// It is empty for a package of another module, and "." for the root itself.
func (t *Tree) name(importPath string) string {
	if importPath == t.Module {
		return "."
	}
	name, ours := strings.CutPrefix(importPath, t.Module+"/")
	if !ours {
		return ""
	}
	return name
}

// shipped reports whether a package goes into somebody's program, rather than
// into tests alone.
func (p *Package) shipped() bool {
	return !strings.HasSuffix(path.Base(p.ImportPath), "test")
}

// chain is the shortest way by which from comes to import to, for a message
// that tells where to cut. It is empty if there is none.
func (t *Tree) chain(from, to string) string {
	before := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at == to {
			var steps []string
			for ; at != ""; at = before[at] {
				steps = append(steps, strings.TrimPrefix(at, t.Module+"/"))
			}
			slices.Reverse(steps)
			return strings.Join(steps, " -> ")
		}
		for _, next := range t.imports[at] {
			if _, seen := before[next]; !seen {
				before[next] = at
				queue = append(queue, next)
			}
		}
	}
	return ""
}

// directImports are the distinct imports of the package and of its tests.
func (p *Package) directImports() []string {
	all := map[string]bool{}
	for _, imports := range [][]string{p.Imports, p.TestImports, p.XTestImports} {
		for _, path := range imports {
			all[path] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// under reports whether path is root or lies below it.
func under(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}
