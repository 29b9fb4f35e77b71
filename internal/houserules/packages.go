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
	DepOnly      bool     // not of this module, only needed by it
}

// A Tree is the root module as its users get it: without the workspace.
type Tree struct {
	Dir      string // folder of go.mod
	Module   string // module path
	Packages []*Package

	imports map[string][]string // direct imports of every package in the build
}

// Load lists the packages of the module in dir with the go command.
func Load(ctx context.Context, dir string) (*Tree, error) {
	module, err := run(ctx, dir, "list", "-m")
	if err != nil {
		return nil, err
	}
	listed, err := run(ctx, dir, "list", "-deps",
		"-json=ImportPath,Name,Dir,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports,DepOnly",
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

// shipped reports whether a package goes into a user's program, rather than into tests
// alone.
func (p *Package) shipped() bool { return shipped(p.ImportPath) }

func shipped(importPath string) bool {
	base := path.Base(importPath)
	return !strings.HasSuffix(base, "test") && !strings.HasPrefix(base, "fake")
}

// A way is one package that another is built from, and the shortest chain of imports that
// leads there, for a message that shows where to cut.
type way struct {
	to    string
	chain string
}

// ways follows imports from a package, nearest first, and passes only through packages
// that through accepts: a breach is then reported once, at the package that can mend it,
// and not again for everything above.
func (t *Tree) ways(from string, through func(importPath string) bool) []way {
	seen := map[string]bool{from: true}
	found := []way{{from, t.short(from)}}
	for i := 0; i < len(found); i++ {
		at := found[i]
		if i > 0 && !through(at.to) {
			continue
		}
		for _, next := range t.imports[at.to] {
			if !seen[next] {
				seen[next] = true
				found = append(found, way{next, at.chain + " -> " + t.short(next)})
			}
		}
	}
	return found[1:]
}

// short is the path of a package in this module, and the import path of any other.
func (t *Tree) short(importPath string) string {
	if name := t.name(importPath); name != "" {
		return name
	}
	return importPath
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
