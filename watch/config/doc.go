// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config reads the file of `setpoint watch -f`: what is watched, the sinks that
// events go to, and the routes between the two. All keys are in docs/watch-config.md.
//
//	c, err := config.Parse(data, "config.yaml")      // all mistakes at once, each with its place
//	sinks, err := c.Router().Route(e)                 // where an event goes
//	report := config.Check(c, readFile, lookupEnv)    // what the file means, in words
//	files, err := config.Manifests(c, options)        // what runs it in a cluster
//
// # Mistakes
//
// [Parse] reports every mistake of a file as a [Finding] that names file, line and column,
// and what to do. Nothing is taken for something else: a key that is not known, a text in
// the place of a number, an empty list where it would mean everything, are mistakes.
// Conditions are compiled, selectors parsed and kinds looked up in a table of those that
// Kubernetes has; no cluster is asked, and the same file means the same everywhere. What is
// no mistake and looks like one, such as a sink that no route leads to, is among
// [Config.Warnings].
//
// # Secrets
//
// A file has no values of its environment in it: a $ means itself, as it does in a password,
// a template or a pattern. What is secret is named, as a file or as an environment variable,
// and read by who makes the sinks. Nothing here holds, prints or puts into a manifest what
// was read, nor a URL of a webhook: texts of options that are secret are of the type
// sink.Secret, and no error quotes them.
//
// # Routes
//
// Routes are asked from the top. The first that matches an event is its last, unless it says
// to continue. A route without sinks ends the way of its events, and an event that no route
// matches is told to nobody. Without routes all sinks get everything. Within a route what
// costs least is asked first, and a condition in CEL last.
package config
