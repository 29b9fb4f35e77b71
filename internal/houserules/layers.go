// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package houserules

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// tableHead is the first line of the table that Layers reads.
const tableHead = "| package | what lives there | may import, of ours |"

// A Row is one line of the table of packages.
type Row struct {
	Name      string   // "cache", or "controllers/<name>" for every folder there
	MayImport []string // names of rows above, direct or through one another
	All       bool     // may import everything
}

var quoted = regexp.MustCompile("`([^`]+)`")

// Table reads the table of packages from ARCHITECTURE.md in dir.
func Table(dir string) ([]Row, error) {
	file := filepath.Join(dir, "ARCHITECTURE.md")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the table of packages: %w", err)
	}
	_, table, found := strings.Cut(string(text), tableHead+"\n")
	if !found {
		return nil, fmt.Errorf("%s has no table that starts with %q", file, tableHead)
	}
	var rows []Row
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 5 {
			break // the table is over
		}
		name, imports := quoted.FindStringSubmatch(cells[1]), strings.TrimSpace(cells[3])
		if name == nil {
			continue // the line between head and rows
		}
		row := Row{Name: name[1], All: imports == "all"}
		for _, match := range quoted.FindAllStringSubmatch(imports, -1) {
			row.MayImport = append(row.MayImport, match[1])
		}
		if !row.All && len(row.MayImport) == 0 && imports != "nothing" {
			return nil, fmt.Errorf("%s: row %s: %q names no package; write `nothing`, `all` or names in backquotes", file, row.Name, imports)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// covers reports whether the row is about the package of that name. A row about
// a command covers the folders below it as well: they are its own.
func (r Row) covers(name string) bool {
	if parent, wild := strings.CutSuffix(r.Name, "/<name>"); wild {
		return strings.HasPrefix(name, parent+"/")
	}
	return name == r.Name || strings.HasPrefix(r.Name, "cmd/") && under(name, r.Name)
}

// Layers holds every package to its row. Packages below internal/ stand in no
// row: they count as part of the packages that import them, so that no import climbs
// up by way of one.
func Layers(tree *Tree, rows []Row) []string {
	var found []string
	used := map[string]bool{}
	internal := func(importPath string) bool { return under(tree.name(importPath), "internal") }
	for _, pkg := range tree.Packages {
		name := tree.name(pkg.ImportPath)
		if internal(pkg.ImportPath) {
			continue
		}
		at := slices.IndexFunc(rows, func(r Row) bool { return r.covers(name) })
		if at < 0 {
			found = append(found, fmt.Sprintf("%s: stands in no row of the table of packages; add one to ARCHITECTURE.md", name))
			continue
		}
		row := rows[at]
		used[row.Name] = true
		for _, way := range tree.ways(pkg.ImportPath, internal) {
			other := tree.name(way.to)
			if other == "" || internal(way.to) || !shipped(way.to) || allowed(rows, row, name, other) {
				continue
			}
			found = append(found, fmt.Sprintf("%s: must not import %s (%s); move what both need below them, or change the table in ARCHITECTURE.md",
				name, other, way.chain))
		}
	}
	for _, row := range rows {
		if !used[row.Name] {
			found = append(found, fmt.Sprintf("ARCHITECTURE.md: the row %s is about no package; take it out until there is one", row.Name))
		}
	}
	slices.Sort(found)
	return found
}

// allowed reports whether a package of row may be built from other.
func allowed(rows []Row, row Row, name, other string) bool {
	if row.All || row.covers(other) && !strings.HasSuffix(row.Name, "/<name>") {
		return true
	}
	// A controller may have folders of its own, but knows none of its siblings.
	if row.covers(other) && (under(other, name) || under(name, other)) {
		return true
	}
	return slices.ContainsFunc(rows, func(below Row) bool {
		return below.covers(other) && reachable(rows, row, below.Name, map[string]bool{})
	})
}

// reachable reports whether the row named to follows from what row may import.
func reachable(rows []Row, row Row, to string, seen map[string]bool) bool {
	seen[row.Name] = true
	for _, name := range row.MayImport {
		if name == to {
			return true
		}
		next := slices.IndexFunc(rows, func(r Row) bool { return r.Name == name })
		if next >= 0 && !seen[name] && reachable(rows, rows[next], to, seen) {
			return true
		}
	}
	return false
}

// Examples holds that examples, and their tests, import nothing that a user could not: what
// an example shows, a reader can copy.
func Examples(tree *Tree) []string {
	var found []string
	for _, pkg := range tree.Packages {
		name := tree.name(pkg.ImportPath)
		if !under(name, "examples") {
			continue
		}
		for _, path := range pkg.directImports() {
			if other := tree.name(path); under(other, "internal") {
				found = append(found, fmt.Sprintf("%s: imports %s, which no user can import; use what is public, or make it so", name, other))
			}
		}
	}
	slices.Sort(found)
	return found
}

// TestOnly holds that no package which is shipped imports one that serves tests
// alone.
func TestOnly(tree *Tree) []string {
	var found []string
	for _, pkg := range tree.Packages {
		for _, path := range pkg.Imports {
			if other := tree.name(path); pkg.shipped() && other != "" && !shipped(path) {
				found = append(found, fmt.Sprintf("%s: imports %s, which serves tests alone", tree.name(pkg.ImportPath), other))
			}
		}
	}
	slices.Sort(found)
	return found
}

// partOf reports whether a package is one of those that is says, or is below internal/ and
// imported by nothing but parts of them: then what they may do, it may.
func (t *Tree) partOf(pkg *Package, is func(*Package) bool) bool {
	if is(pkg) || !under(t.name(pkg.ImportPath), "internal") {
		return is(pkg)
	}
	imported := false
	for _, by := range t.Packages {
		if !by.shipped() || !slices.Contains(by.Imports, pkg.ImportPath) {
			continue
		}
		if imported = t.partOf(by, is); !imported {
			return false
		}
	}
	return imported
}
