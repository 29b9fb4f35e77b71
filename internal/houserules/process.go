// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package houserules

import (
	"fmt"
	"slices"
	"strings"
)

// everything marks a package of which nothing may be used.
const everything = "*"

// ofTheProcess is what belongs to the main program: a library that
// reads a flag or an environment variable has an input that its caller does not
// see, and one that prints or exits takes a decision that is not its own.
var ofTheProcess = map[string][]string{
	"": {"print", "println"}, // built in, to standard error
	"os": {
		"Args", "Stdin", "Stdout", "Stderr", "Exit",
		"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Setenv", "Unsetenv", "Clearenv",
	},
	"syscall":                          {"Getenv", "Environ", "Setenv", "Exit"},
	"fmt":                              {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
	"os/signal":                        {everything},
	"flag":                             {everything},
	"log":                              {everything}, // writes to standard error by default
	"github.com/spf13/pflag":           {everything},
	"github.com/spf13/cobra":           {everything},
	"k8s.io/client-go/rest":            {"InClusterConfig"},                    // reads the environment
	"k8s.io/client-go/tools/clientcmd": {"NewDefaultClientConfigLoadingRules"}, // reads KUBECONFIG
}

// Process holds that only the commands touch what belongs to the process, and what they
// alone share below internal/.
func Process(tree *Tree) ([]string, error) {
	var found []string
	for _, pkg := range tree.Packages {
		if !pkg.shipped() || tree.partOf(pkg, func(p *Package) bool { return p.Name == "main" || under(tree.name(p.ImportPath), "cmd") }) {
			continue
		}
		uses, err := pkg.uses()
		if err != nil {
			return nil, err
		}
		for _, use := range uses {
			names := ofTheProcess[use.path]
			// A dot import hides what is used, and no package needs one of these.
			if slices.Contains(names, everything) || slices.Contains(names, use.name) || names != nil && use.name == "." {
				found = append(found, fmt.Sprintf("%s/%s: uses %s, which belongs to the process; only cmd may, others take it as an argument",
					tree.name(pkg.ImportPath), use.at, strings.TrimPrefix(use.path+"."+use.name, ".")))
			}
		}
	}
	slices.Sort(found)
	return found, nil
}
