// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page shows why objects are as they are, and what the loops of a manager do, in a browser.
//
//	m, err := manager.New(config, manager.Serve(listener, serving.Options{}))
//	...
//	err = page.Add(m) // serves it below /page/
//
// # Views
//
//   - / has the loops, sorted by trouble.
//   - /o/GROUP/PLURAL/NAMESPACE/NAME has an object: the sentence, the chain of causes, what was not done and why, what is
//     below it, its timeline and its fields. The core group is "core", and the namespace of objects of the cluster is "-".
//     ?run=N opens a run, ?at=TIME marks a time in the timeline, and ?below=N unfolds the objects below.
//   - /changes?namespace=NAMESPACE&since=5m has what happened in a namespace, or in all of them: the changes, folded by what
//     began them, with their authors.
//   - /search?q=TEXT has the objects whose kind or name the text names. Objects that do not exist any more are found as long
//     as the record has them. "/" and Ctrl-K lead to the search box of every view.
//   - /live?view=VIEW has server-sent events with the changed views.
//
// The server renders each view whole, and every state has an address. Without JavaScript a view is complete and does not
// change. A small script replaces the parts that changed.
//
// # Where it comes from
//
// A [Source] has the state of the loops, the record of runs and a client of the API server. [Of] is that of a manager in
// this process, joined with the other managers of the cluster that have announced themselves. The facts about an object are gathered while a user has its view open, at most once a second for all
// users together. Without users, the pages cost one sample of the counters of each loop in five seconds.
//
// # Rights
//
// The server in front of the handler decides who may see the pages: [Add] uses package serving. A [Viewer] then decides
// which objects are shown. An object is shown to users who may get it, and the objects below it by kind, to users who
// may get all objects of the kind in the namespace. So are the names of objects in runs, in what happened, and in a search.
//
// # Safety
//
// Texts of objects are escaped by html/template, and control characters and characters that turn the direction of text
// are replaced. A strict Content-Security-Policy lets the browser load the one script and the one style sheet of this
// server, and nothing else. No answer is stored by a cache, apart from these two.
package page
