// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/controllers/registry"
)

func names(entries []registry.Entry) string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Alias)
	}
	return strings.Join(all, " ")
}

func TestSelectReadsWordsAsKubeControllerManagerDoes(t *testing.T) {
	everything := names(registry.All())
	for words, want := range map[string]string{
		"":                                      everything,
		"*":                                     everything,
		"replicaset":                            "replicaset",
		"replicaset-controller":                 "replicaset",
		"deployment,replicaset":                 "deployment replicaset",
		"*,-deployment":                         strings.Replace(everything, "deployment ", "", 1),
		"-deployment-controller,*":              strings.Replace(everything, "deployment ", "", 1),
		"deployment,-deployment":                "deployment",
		"replicaset, serviceaccount-controller": "replicaset serviceaccount",
	} {
		var list []string
		if words != "" {
			list = strings.Split(words, ",")
		}
		got, err := registry.Select(list)
		if err != nil || names(got) != want {
			t.Errorf("%q: %q, %v; want %q", words, names(got), err, want)
		}
	}
}

func TestUnknownControllerIsRefusedWithTheNearestKnown(t *testing.T) {
	for word, nearest := range map[string]string{
		"deploymnet":             "deployment-controller",
		"-replicasets":           "replicaset-controller",
		"service-account":        "serviceaccount-controller",
		"cronjob-controller-xyz": "",
	} {
		_, err := registry.Select([]string{word})
		var unknown *registry.UnknownError
		if !errors.As(err, &unknown) || unknown.Nearest != nearest {
			t.Errorf("%s: %v", word, err)
		}
	}
}

func TestSelectingNothingIsRefused(t *testing.T) {
	if got, err := registry.Select([]string{"-deployment"}); err == nil {
		t.Errorf("selected %q", names(got))
	}
}

func TestNamesAreSortedAndDiffer(t *testing.T) {
	var all []string
	for _, e := range registry.All() {
		all = append(all, e.Name)
	}
	if !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Errorf("%q", all)
	}
}

func Example() {
	entries, err := registry.Select([]string{"*", "-deployment"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range entries {
		fmt.Println(e.Name)
	}
	_, err = registry.Select([]string{"replicasett"})
	fmt.Println(err)
	// Output:
	// node-lifecycle-controller
	// replicaset-controller
	// serviceaccount-controller
	// there is no controller "replicasett"; did you mean "replicaset-controller"?
}
