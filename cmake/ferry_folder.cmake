# One folder of src/ is one static library `ferry_<name>`, with its headers as a verified header set, and, where the
# folder has `*_test.cc` files, one GoogleTest program `<name>_test`.
#
#   ferry_folder(graph LINKS ferry_base PRIVATE_LINKS fmt::fmt [SOURCES extra.cc] [TEST_LINKS ...])
function(ferry_folder name)
  cmake_parse_arguments(F "" "" "LINKS;PRIVATE_LINKS;SOURCES;EXCLUDE;TEST_LINKS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cc")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.h")
  foreach(pattern IN LISTS F_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${pattern}")
    list(FILTER headers EXCLUDE REGEX "${pattern}")
  endforeach()
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")

  add_library(ferry_${name} STATIC ${sources} ${F_SOURCES})
  target_sources(ferry_${name} PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/src" FILES ${headers})
  target_include_directories(ferry_${name} PUBLIC "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  target_link_libraries(ferry_${name} PUBLIC ${F_LINKS} PRIVATE ${F_PRIVATE_LINKS})

  if(FERRY_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE ferry_${name} ${F_TEST_LINKS} GTest::gtest GTest::gtest_main)
    add_test(NAME ${name} COMMAND ${name}_test WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  endif()
endfunction()
