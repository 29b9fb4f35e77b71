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
// [Parse] reports every mistake of a file as a [Finding] that names file, line and column, and
// what to do. It never guesses: an unknown key, a text in the place of a number, or an empty list
// where it would mean everything is a mistake. Conditions are compiled and selectors parsed. Parse
// does not connect to a cluster, so the same file means the same everywhere. [Config.Warnings] has
// what is allowed and is probably not meant, such as a sink that no route leads to.
//
// # The reader of YAML
//
// The parser is go.yaml.in/yaml. Its decoder into structs is not used, for three reasons that each
// concern a user. Its errors have a line and no column, and name the Go types of this package. It
// accepts values that were not meant: true where a text belongs is the text "true", and a list
// with all of its elements commented out is an empty list, which would match everything. And
// after it nothing says where in the file a value stands, or that it is there at all, which the
// rules of this package need for their messages. So decode.go walks the nodes of the parser into
// the same structs, by the same tags, and remembers the node of each value.
//
// # The table of kinds
//
// kinds.txt has the kinds of Kubernetes: their groups, short names, and whether their objects are
// in namespaces. The watch itself asks the server for them. This package has no server: it needs
// the table to find a misspelt kind in a file that is checked before it is deployed, and to write
// a Role or a ClusterRole for each kind. A test compares the table with a kube-apiserver.
//
// # Secrets
//
// A file contains no values of the environment: a $ means itself, as it does in a password, a
// template or a pattern. A secret is named, as a file or as an environment variable, and the
// program that makes the sinks reads it. This package holds and prints no secret, puts none into a
// manifest, and shows no URL of a webhook: options that hold a secret are of the type sink.Secret.
//
// # Routes
//
// Routes are tried from the top. The first that matches an event is its last, unless it has
// continue. A route without sinks drops its events, and so does the end of the routes. Without
// routes all sinks get everything. A route tries its cheapest conditions first, and CEL last.
package config
