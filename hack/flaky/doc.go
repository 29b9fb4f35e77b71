// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Flaky finds tests that fail now and then.
//
//	flaky retry [-retries N] [-report FILE] -- MODULE [-- MODULE]...
//	flaky hunt [-base COMMIT] [-count N] [-for TIME] [-timeout TIME] [-cpu LIST]
//	           [-run REGEXP] [-race] [-out FOLDER]
//
// "retry" is what make test calls. A module is FOLDER [NAME=VALUE...] [FLAG...] [./PACKAGE...]. It
// runs "go test FLAG... ./PACKAGE..." (without packages, "./...") in one folder after another, with
// the settings in its environment, prints what go test prints, and runs up to N of the tests that failed once
// more, each alone, with the same flags. A test that passes then is flaky: it is printed
// under the heading FLAKY with both outputs, written to FILE, and does not fail the run. A
// test that fails twice does, and so does every failure that no single test is responsible for: a package
// that does not build, a TestMain that fails, a data race after the last test. If more
// than N tests fail, the run fails whatever the second runs say.
//
// A panic or a timeout ends the tests of its package. The test that was running is run
// again alone, and if it passes, so are the tests of the package that had no result yet:
// the package passes only if each of its tests has passed.
//
// It lends control planes to the tests, so that not every package has to start one; package
// loan says how. SETPOINT_CONTROLPLANE_BIN names the binary.
//
// "hunt" is make flaky. It compiles the tests of each package that differs from COMMIT,
// uncommitted and new files included, and runs every test of them N times, one after
// another, with each of several GOMAXPROCS, beside as many busy goroutines as the machine
// has cores. It ends early when TIME is over. It prints how often each test ran and
// failed, writes the first failure of each to a file in the folder, and exits with 1 if
// there was one.
//
// [packageRun] makes results of the stream of "go test -json", [plan] chooses what is run
// again; both are pure.
package main
