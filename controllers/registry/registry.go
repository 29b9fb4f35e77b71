// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"strings"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers/deployment"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
	"github.com/setpoint-io/setpoint/controllers/serviceaccount"
)

// Entry is a built-in controller.
type Entry struct {
	Name  string // kube-controller-manager's
	Alias string // its older name, which --controllers takes too
	What  string // in a few words, for people
	New   func(controller.Host) (*controller.Controller, error)
}

// All returns the built-in controllers, in the order of their names.
// Source of names and aliases: k8s.io/kubernetes/cmd/kube-controller-manager/names
// and app, KCMControllerAliases.
func All() []Entry {
	return []Entry{
		{deployment.Name, "deployment", "rolls out Deployments", func(h controller.Host) (*controller.Controller, error) {
			return deployment.New(h, deployment.Options{})
		}},
		{nodelifecycle.Name, "nodelifecycle", "taints nodes by their conditions", func(h controller.Host) (*controller.Controller, error) {
			return nodelifecycle.New(h, nodelifecycle.Options{})
		}},
		{replicaset.Name, "replicaset", "keeps the number of Pods of ReplicaSets", func(h controller.Host) (*controller.Controller, error) {
			return replicaset.New(h, replicaset.Options{})
		}},
		{serviceaccount.Name, "serviceaccount", "gives every namespace its default ServiceAccount", func(h controller.Host) (*controller.Controller, error) {
			return serviceaccount.New(h, serviceaccount.Options{})
		}},
	}
}

// Select returns the controllers that the words of --controllers mean: "*" is all,
// a name is that one, "-name" is without that one. Where two words are about one
// controller, its name outweighs "*", and the first outweighs the second. No word
// at all means "*".
//
// Source of the rule: k8s.io/controller-manager/app, IsControllerEnabled.
func Select(words []string) ([]Entry, error) {
	if len(words) == 0 {
		words = []string{"*"}
	}
	all := All()
	everything := false
	said := map[string]bool{}
	for _, word := range words {
		word = strings.TrimSpace(word)
		if word == "*" {
			everything = true
			continue
		}
		name, without := strings.CutPrefix(word, "-")
		entry, err := find(all, name)
		if err != nil {
			return nil, err
		}
		if _, before := said[entry.Name]; !before {
			said[entry.Name] = !without
		}
	}
	var chosen []Entry
	for _, entry := range all {
		if wanted, named := said[entry.Name]; wanted || (!named && everything) {
			chosen = append(chosen, entry)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("--controllers=%s leaves no controller to run", strings.Join(words, ","))
	}
	return chosen, nil
}

// UnknownError is returned for a name that no controller has.
type UnknownError struct {
	Name    string
	Nearest string // the name that is most like it, or "" if none is
	Known   []string
}

func (e *UnknownError) Error() string {
	text := fmt.Sprintf("there is no controller %q", e.Name)
	if e.Nearest != "" {
		return text + fmt.Sprintf("; did you mean %q?", e.Nearest)
	}
	return text + "; there are " + strings.Join(e.Known, ", ")
}

func find(all []Entry, name string) (Entry, error) {
	unknown := &UnknownError{Name: name}
	least := 0
	for _, entry := range all {
		if name == entry.Name || name == entry.Alias {
			return entry, nil
		}
		unknown.Known = append(unknown.Known, entry.Name)
		for _, candidate := range []string{entry.Name, entry.Alias} {
			// More than a third of the letters wrong is another word.
			if d := distance(name, candidate); d <= (len(candidate)+2)/3 && (unknown.Nearest == "" || d < least) {
				unknown.Nearest, least = entry.Name, d
			}
		}
	}
	return Entry{}, unknown
}

// distance is the number of letters to insert, delete or replace to make b of a
// (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
