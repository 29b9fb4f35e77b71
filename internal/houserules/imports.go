// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package houserules

import (
	"fmt"
	"slices"
	"strings"
)

// replaced are the parts of client-go that this project is the replacement of.
// inTree says whether a package may not even be somewhere below ours: client-go
// itself needs its work queue to rotate client certificates, so that everything
// which imports k8s.io/client-go/rest is built from it.
var replaced = []struct {
	path   string
	inTree bool
}{
	{"k8s.io/client-go/tools/cache", true},
	{"k8s.io/client-go/informers", true},
	{"k8s.io/client-go/listers", true},
	{"k8s.io/client-go/metadata/metadatainformer", true},
	{"k8s.io/client-go/metadata/metadatalister", true},
	{"k8s.io/client-go/dynamic/dynamicinformer", true},
	{"k8s.io/client-go/dynamic/dynamiclister", true},
	{"k8s.io/client-go/util/workqueue", false},
	{"k8s.io/kubernetes", true},
}

// Peers holds that no package, nor its tests, imports what this project
// replaces, and that none is built from it by way of another module.
func Peers(tree *Tree) []string {
	var found []string
	for _, pkg := range tree.Packages {
		name := tree.name(pkg.ImportPath)
		ways := tree.ways(pkg.ImportPath, func(importPath string) bool { return tree.name(importPath) == "" })
		for _, peer := range replaced {
			if slices.ContainsFunc(pkg.directImports(), func(path string) bool { return under(path, peer.path) }) {
				found = append(found, fmt.Sprintf("%s: imports %s, which this project replaces", name, peer.path))
				continue
			}
			nearest := slices.IndexFunc(ways, func(way way) bool { return under(way.to, peer.path) })
			if nearest >= 0 && peer.inTree {
				found = append(found, fmt.Sprintf("%s: is built from %s, which this project replaces (%s)",
					name, ways[nearest].to, ways[nearest].chain))
			}
		}
	}
	slices.Sort(found)
	return found
}

// networks are the packages with which a connection can be opened or awaited. A folder of
// each counts as well, except the folders named in harmless.
var networks = []string{
	"net",
	"crypto/tls",
	"golang.org/x/net",
	"google.golang.org/grpc",
	"github.com/gorilla/websocket",
	"k8s.io/client-go/rest",
	"k8s.io/client-go/transport",
	"k8s.io/client-go/kubernetes",
	"k8s.io/client-go/dynamic",
	"k8s.io/client-go/metadata",
	"k8s.io/client-go/discovery",
	"k8s.io/client-go/tools/clientcmd",
}

// harmless are packages below those of networks that only hold data.
var harmless = []string{
	"net/netip",
	"net/url",
	"net/mail",
	"net/textproto",
	"k8s.io/client-go/kubernetes/scheme",
	"k8s.io/client-go/tools/clientcmd/api",
}

// connecting are the packages that may open a connection, or await one: the
// client, the manager for its health and metrics server, the handlers of the pages, the exporter of traces, the sinks that events are
// sent to, and the commands, of which those below hack and the examples are some.
var connecting = []string{"client", "manager", "page", "traces", "watch/sink", "cmd", "hack", "examples"}

// Connections holds that only the packages meant for it, and what they alone share below
// internal/, use what can open a connection. Tests are free to: they need servers to talk to.
func Connections(tree *Tree) ([]string, error) {
	var found []string
	for _, pkg := range tree.Packages {
		name := tree.name(pkg.ImportPath)
		if !pkg.shipped() || tree.partOf(pkg, func(p *Package) bool {
			return slices.ContainsFunc(connecting, func(root string) bool { return under(tree.name(p.ImportPath), root) })
		}) {
			continue
		}
		uses, err := pkg.uses()
		if err != nil {
			return nil, err
		}
		for _, use := range uses {
			if connects(use) {
				found = append(found, fmt.Sprintf("%s/%s: uses %s.%s, and only %s may open connections; take a client from the caller",
					name, use.at, use.path, use.name, strings.Join(connecting, ", ")))
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// connects reports whether a use is of a package that can open connections, and
// of more than the constants that HTTP gives to everyone.
func connects(use use) bool {
	inside := func(root string) bool { return under(use.path, root) }
	constant := use.path == "net/http" && (strings.HasPrefix(use.name, "Status") || strings.HasPrefix(use.name, "Method"))
	return slices.ContainsFunc(networks, inside) && !slices.ContainsFunc(harmless, inside) && !constant
}
