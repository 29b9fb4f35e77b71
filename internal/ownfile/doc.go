// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ownfile opens files and directories that must belong to the user who runs this
// process.
//
// A directory that other users may write to can hold anything: a symbolic link or a second
// name of a file of this user, a pipe that blocks the process that opens it, keys that another user
// knows. The package looks first and uses afterwards, and it looks at what is open rather
// than at a name, which may mean something else a moment later. Errors wrap [ErrNotOwn].
//
// Root is trusted beside the user, because root may do everything anyway. Systems whose files
// have no owners are not protected.
package ownfile
