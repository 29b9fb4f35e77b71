// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/controllers"
)

// idleGroup is flags that have no effect for one reason, called as the log calls them.
type idleGroup struct {
	why   string
	flags []controllers.Flag
}

// idleGroups are the flags of kube-controller-manager 1.37 that have no effect here, unless a
// controller declares them. They are accepted with every value that kube-controller-manager
// accepts, so that its command line works unchanged. Source: kube-controller-manager --help
// for names and defaults, and the Validate functions in
// k8s.io/kubernetes/cmd/kube-controller-manager/app/options for the least values.
func idleGroups() []idleGroup {
	return []idleGroup{
		{"cloudProviders", []controllers.Flag{
			idle("allow-untagged-cloud", false),
			idle("cloud-config", ""),
			idle("cloud-provider", ""),
			idle("cluster-name", "kubernetes"),
			idle("concurrent-service-syncs", 1), // until 1.36
			idle("configure-cloud-routes", true),
			idle("external-cloud-volume-plugin", ""),
			idle("node-sync-period", time.Duration(0)),
			idle("route-reconciliation-period", 10*time.Second),
		}},
		{"volumePlugins", []controllers.Flag{
			idle("flex-volume-plugin-dir", "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/"),
		}},
		{"logging", []controllers.Flag{
			idle("log-flush-frequency", 5*time.Second).AtLeast(1),
			idle("log-json-split-stream", false),
			idle("log-text-split-stream", false),
			idleText("log-json-info-buffer-size", "quantity", quantity),
			idleText("log-text-info-buffer-size", "quantity", quantity),
			idleText("vmodule", "pattern=N,...", levelsOfFiles),
		}},
		{"compatibility", []controllers.Flag{
			idleText("show-hidden-metrics-for-version", "string", previousVersion),
		}},
	}
}

// idle is a flag that has no effect, with its default.
func idle[T bool | int | string | time.Duration](name string, byDefault T) controllers.Flag {
	return controllers.Flag{Name: name, Into: &byDefault}
}

// idleText is one with a form of its own. Its default is empty.
func idleText(name, kind string, check func(string) error) controllers.Flag {
	return controllers.Flag{Name: name, Into: &checkedText{kind: kind, check: check}}
}

// idleFlags are those flags on a command line.
type idleFlags struct {
	set    *pflag.FlagSet
	groups []idleGroup
}

// flags adds those that are not there. The help of each says why it has no effect.
func (f *idleFlags) flags(set *pflag.FlagSet) {
	f.set, f.groups = set, idleGroups()
	for i, group := range f.groups {
		f.groups[i].flags = slices.DeleteFunc(group.flags, func(flag controllers.Flag) bool { return set.Lookup(flag.Name) != nil })
		for _, flag := range f.groups[i].flags {
			declare(set, flag)
			added := set.Lookup(flag.Name)
			added.Usage, added.Hidden = noEffect+idleReason(flag.Name), unlisted[flag.Name]
		}
	}
}

// check returns what kube-controller-manager finds wrong with their values.
func (f *idleFlags) check() error {
	for _, group := range f.groups {
		for _, flag := range group.flags {
			if err := flag.Check(); err != nil {
				return err
			}
		}
	}
	if provider := f.set.Lookup("cloud-provider").Value.String(); provider != "" && provider != "external" {
		return fmt.Errorf("--cloud-provider=%s: Kubernetes has no cloud providers of its own any more; want external, or leave it out", provider)
	}
	return nil
}

// given returns the flags that are on the command line, by the reason why they have no effect.
// They alternate with their reasons, as a logger takes attributes.
func (f *idleFlags) given() (attributes []any) {
	for _, group := range f.groups {
		var names []string
		for _, flag := range group.flags {
			if f.set.Changed(flag.Name) {
				names = append(names, "--"+flag.Name)
			}
		}
		if len(names) > 0 {
			attributes = append(attributes, group.why, strings.Join(names, " "))
		}
	}
	return attributes
}
