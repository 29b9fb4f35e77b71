// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/because"
)

// defaultLease is the Lease of --leader-elect.
var defaultLease = object.Key{Namespace: "default", Name: "setpoint-watch"}

func rootCommand(r *runCommand) *cobra.Command {
	c := &cobra.Command{
		Use:         "setpoint-watch [KIND,KIND... [NAME...] | KIND/NAME...]",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: name},
		Short:       "Print what changes in a cluster, and who changed it",
		Long: `Print what changes in a cluster, and who changed it, until Ctrl-C: every creation,
update and deletion of Pods, or of other kinds, in all namespaces or in some.

Kinds and objects are named as for kubectl, in any case: pods, po, deployments.apps,
widgets.example.com; "deploy web" and deploy/web are the Deployments of this name. Kinds
that are defined later are picked up. A kind that may not be read is said once and tried
again; the others go on.

Heartbeats, and changes of nothing but the status, are left out unless --show asks for
them. What is wrong with an object is reported all the same, once, and so is its end:
containers that crash or cannot start, Pods without a Node, Nodes that are not ready,
conditions that failed. Values of Secrets are never shown, only that they changed.

With --cursor nothing is missed over a restart: the next start tells what has changed
in between, deletions too. With --once it ends then. With -f events go to files,
webhooks, chat and mail.`,
		Example: `  # Pods of all namespaces
  setpoint watch

  # one Deployment
  setpoint watch deploy web -n team-a

  # several kinds in two namespaces, field by field
  setpoint watch deployments,services -n team-a -n team-b -o diff

  # Deployments that are scaled
  setpoint watch deploy --where 'event.verb == "updated" && old.spec.replicas != new.spec.replicas'

  # every kind that there is, for a program
  setpoint watch --all -o json

  # in a script: what has changed since the last run? The status is 1 if something has
  setpoint watch deployments --cursor ./seen --once

  # a file that says where events go, and what is wrong with it
  setpoint watch check -f watch.yaml
  setpoint watch -f watch.yaml`,
		Args:              cobra.ArbitraryArgs, // kindsOf says what is wrong with them
		RunE:              r.run,
		ValidArgsFunction: r.completeArguments,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true}, // setpoint has it
		Version:           cli.WhatThisIs(version).String(),
	}
	c.SetVersionTemplate(name + " {{.Version}}\n")
	f := c.Flags()
	f.SortFlags = false // related flags stand together
	r.selection.flags(f)
	r.printing.flags(f)
	f.StringVar(&r.cursor, "cursor", "", "keep in this `file` which state of each object was reported, so that the next start reports what changed meanwhile; a digest of the state, not the state itself: of the first change after a start, the fields are not known (see --cursor-states)")
	f.BoolVar(&r.states, "cursor-states", false, "with --cursor: keep the last state of each object too, compressed and without hidden values, so that the first change after a start has its fields and authors")
	f.BoolVar(&r.causes, "causes", true, "say why a controller made a change, by the record of the cluster's manager, if it has announced itself")
	f.DurationVar(&r.within, "causes-within", because.Bound, "wait this long at most for the causes of changes that are seen at the same time; lines without a cause are printed then")
	f.BoolVar(&r.once, "once", false, "with --cursor: tell what has changed since the last run, and end with status 1 if something has, 0 if not, 2 after an error")
	f.StringVarP(&r.file, "config", "f", "", "YAML `file` that says what is watched and where events go; flags win over it")
	r.target.Flags(f)
	r.answering.Flags(f, 0)
	r.electing.Flags(f, cli.LeaseDefaults{On: false, Key: defaultLease, Processes: "watches of the same"})
	r.logging.ForPeople = true
	r.logging.Flags(f, c)
	r.complete(c)
	cli.ExplainFlagErrors(c, flagsOfKubectl)
	c.AddCommand(checkCommand(r.w), manifestsCommand(r.w))
	return c
}

// flagsOfKubectl says what takes the place of a flag of "kubectl get -w".
func flagsOfKubectl(flag string) (why string, ok bool) {
	why, ok = map[string]string{
		"w":                   "is what this command does; leave it out",
		"watch":               "is what this command does; leave it out",
		"watch-only":          "is what this command does unless --initial is given; leave it out",
		"output-watch-events": "is what this command does; leave it out",
		"filename":            "is a flag of kubectl; -f names the configuration here, and kinds are arguments",
		"no-headers":          "is a flag of kubectl; there are no headers here",
		"show-managed-fields": "is a flag of kubectl; who made a change is said with each event",
		"sort-by":             "is a flag of kubectl; events come in the order in which they happen",
	}[flag]
	return why, ok
}
